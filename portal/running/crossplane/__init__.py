"""In charge of: a real Crossplane on one machine without containers: its programs are built, started and ended here.

    golang, parts, build, crds    what is built and taken out of Go modules, pinned, kept in $PORTAL_CACHE
    layout, ports, authority,
    access, probes                files, ports, certificates, tokens, and whether a program is up
    kube                          the little that is needed of the Kubernetes API
    servers, controllers          the programs: etcd and API servers; Crossplane, its function and its provider
    install, nodes                what is written to the API servers
    plan                          all of it in order
    actor, reports                the test-only actor that plays the operators of the workload clusters

Not in charge of: what the portal does with a control plane; nothing here knows the portal.
"""
