-- Q4: order priority checking
-- customer: as written
-- supplier: refused: T205 EXISTS over a private table cannot filter rows of a public table; put the private table into FROM, and
--     use COUNT(DISTINCT ...)
-- limits of a customer: 2 groups, 2 rows
SELECT o_orderpriority, COUNT(*) AS order_count
FROM orders
WHERE o_orderdate >= DATE '1993-07-01'
    AND o_orderdate < DATE '1993-07-01' + INTERVAL '3' MONTH
    AND EXISTS (
        SELECT *
        FROM lineitem
        WHERE l_orderkey = o_orderkey
            AND l_commitdate < l_receiptdate
    )
GROUP BY o_orderpriority
ORDER BY o_orderpriority;
