-- Q3: shipping priority
-- customer: changed: an order is of one customer, so revenue is asked by the day of the order; l_orderkey is left
--     out
-- supplier: changed: an order has few suppliers, so revenue is asked by the day of the order; l_orderkey is left out
-- limits of a customer: 2 groups, 7 rows
-- limits of a supplier: 4 groups, 2 rows
-- keys: o_orderdate: 1994-11-14 to 1995-03-14
SELECT
    o_orderdate,
    SUM(l_extendedprice * (1 - l_discount)) AS revenue,
    o_shippriority
FROM customer, orders, lineitem
WHERE c_mktsegment = 'BUILDING'
    AND c_custkey = o_custkey
    AND l_orderkey = o_orderkey
    AND o_orderdate < DATE '1995-03-15'
    AND l_shipdate > DATE '1995-03-15'
GROUP BY o_orderdate, o_shippriority
ORDER BY revenue DESC, o_orderdate
LIMIT 10;

-- as in the specification:
-- customer: empty: a group is one order, which one customer has
-- supplier: empty: a group is one order, which few suppliers have in common
SELECT
    l_orderkey,
    SUM(l_extendedprice * (1 - l_discount)) AS revenue,
    o_orderdate,
    o_shippriority
FROM customer, orders, lineitem
WHERE c_mktsegment = 'BUILDING'
    AND c_custkey = o_custkey
    AND l_orderkey = o_orderkey
    AND o_orderdate < DATE '1995-03-15'
    AND l_shipdate > DATE '1995-03-15'
GROUP BY l_orderkey, o_orderdate, o_shippriority
ORDER BY revenue DESC, o_orderdate
LIMIT 10;
