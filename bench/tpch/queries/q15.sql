-- Q15: top supplier
-- customer: changed: the greatest of the noisy revenues is the first of them in order; the supplier's name and
--     address, which are public, are looked up afterwards
-- supplier: refused: T203 values computed from the unit's own column identify single units; use a column that many
--     units share
-- limits of a customer: 8 groups, 1 row
SELECT l_suppkey AS s_suppkey, SUM(l_extendedprice * (1 - l_discount)) AS total_revenue
FROM lineitem
WHERE l_shipdate >= DATE '1996-01-01'
    AND l_shipdate < DATE '1996-01-01' + INTERVAL '3' MONTH
GROUP BY l_suppkey
ORDER BY total_revenue DESC
LIMIT 1;

-- as in the specification:
-- customer: refused: T205 this subquery aggregates over several units; group it by the unit's column, or aggregate
--     at the top only
-- supplier: refused: T202 a subquery as a value is not supported; ask for it by itself and write the number here, or
--     join it in FROM
WITH revenue (supplier_no, total_revenue) AS (
    SELECT l_suppkey, SUM(l_extendedprice * (1 - l_discount))
    FROM lineitem
    WHERE l_shipdate >= DATE '1996-01-01'
        AND l_shipdate < DATE '1996-01-01' + INTERVAL '3' MONTH
    GROUP BY l_suppkey
)
SELECT s_suppkey, s_name, s_address, s_phone, total_revenue
FROM supplier, revenue
WHERE s_suppkey = supplier_no
    AND total_revenue = (SELECT MAX(total_revenue) FROM revenue)
ORDER BY s_suppkey;
