"""Where and how a claim becomes real resources.

A Crossplane composition function for the kinds of the group ``aiplatform.example.org``. It decides on which cluster of
the fleet a claim runs and what is composed there. It is not in charge of whether the claim may exist, what it may cost
or who owns it: whoever writes claims decides that before.

    runner          gRPC in, gRPC out; which other objects a kind has to see
    contract        the same as plain Python: Request in, Outcome out
    fleet           other objects -> what placement needs to know of them
    slots           the words of placement
    placement       which slot, and why (pure)
    objects         composed manifests wrapped for provider-kubernetes, and what was observed of them
    kinds           kind -> the module that composes it: modeldeployment, vectordatabase (pgvector, qdrant), fleet_kinds
"""
