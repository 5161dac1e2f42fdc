"""In charge of: a real Backstage backend on one machine, for tests and for `make backstage`.

    host/      its packages by exact version, its start and its configuration; for this machine only
    node       Node.js and npm: which, and whether they are there
    install    the packages and this project's own module, once, in $PORTAL_CACHE
    people     User and Group entities out of a bootstrap file
    plan       all of it in order, and how a token is got

Not in charge of: what it is wired to; nothing here knows what the portal does.
"""
