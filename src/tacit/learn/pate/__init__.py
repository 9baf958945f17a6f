"""PATE: private aggregation of teacher ensembles (Papernot et al. 2017, 2018).

    aggregators.py         LNMax, GNMax, Confident-GNMax, Interactive-GNMax: one label from the teachers' votes
    bounds.py              data-dependent Rényi bounds of the aggregators, and their conversion to epsilon
    smooth_sensitivity.py  how far one person can move these bounds
    sanitised_epsilon.py   the sanitised data-dependent epsilon: the only data-dependent figure that is released
    teachers.py            training on disjoint parts, in parallel and resumable
    descriptions.py        what a teacher holds, as a text: votes that were kept belong to one of them
    isolation.py           teachers that run in one process do not reach each other through generators or warnings
    answers.py             the release plan of the answers to all queries
    student.py             `PATE`, and `PrivatePrediction`, which answers queries without a student

Neighbours, for all of it: one unit is added, removed or replaced. Every unit is in the part of one teacher, drawn
uniformly and independently of all others, so that a neighbour changes the training set of one teacher, whose vote on
each query may move from one class to another. (Parts of equal size would not do under add/remove: one person more
would shift another one to a different part, and so change two teachers.)
"""
