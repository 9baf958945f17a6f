-- Q17: small-quantity-order revenue
-- customer: changed: the average quantity of each part, which mixes units, is the one that the specification states
--     for all parts, 25.5
-- supplier: changed: the average quantity of each part, which mixes units, is the one that the specification states
--     for all parts, 25.5
-- limits of a customer: 1 group, 1 row
-- limits of a supplier: 1 group, 1 row
SELECT SUM(l_extendedprice) / 7.0 AS avg_yearly
FROM lineitem, part
WHERE p_partkey = l_partkey
    AND p_brand = 'Brand#23'
    AND p_container = 'MED BOX'
    AND l_quantity < 0.2 * 25.5;

-- as in the specification:
-- customer: refused: T202 a subquery as a value is not supported; ask for it by itself and write the number here, or
--     join it in FROM
-- supplier: refused: T202 a subquery as a value is not supported; ask for it by itself and write the number here, or
--     join it in FROM
SELECT SUM(l_extendedprice) / 7.0 AS avg_yearly
FROM lineitem, part
WHERE p_partkey = l_partkey
    AND p_brand = 'Brand#23'
    AND p_container = 'MED BOX'
    AND l_quantity < (
        SELECT 0.2 * AVG(l_quantity)
        FROM lineitem
        WHERE l_partkey = p_partkey
    );
