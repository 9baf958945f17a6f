"""Classic attacks on published data, one script each, beside the same attack on tacit.

`python -m gallery [FOLDER]` runs them all, `python -m gallery.NAME [FOLDER]` one; plots go into FOLDER. Each prints
what was published and what theory says beside what is measured here. Data are generated; with TACIT_DATA naming a
folder that holds UCI Adult (adult/train.csv), secrets and quasi-identifiers are those of its people.
"""
