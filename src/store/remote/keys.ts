// Where things are in a remote store: the only place that knows its keys.
//
//   v1/ac/<action digest>    action result and its attestation; first writer wins
//   v1/trees/<digest>        manifest of a tree and where its bytes are, zstd
//   v1/packs/<id>            small files one after the other, zstd
//   v1/blobs/<digest>        a part of a large file; named by what it holds before compression
//   v1/logs/<digest>         text of a log, zstd
//   v1/leases/<digest>       who executes an action
//   v1/roots/<name>          what gc must keep: one a run, one a pin
//   v1/quarantine/…          what failed verification

export const AC = 'v1/ac/'
export const TREES = 'v1/trees/'
export const PACKS = 'v1/packs/'
export const BLOBS = 'v1/blobs/'
export const LOGS = 'v1/logs/'
export const LEASES = 'v1/leases/'
export const ROOTS = 'v1/roots/'
export const QUARANTINE = 'v1/quarantine/'

/** The untrusted namespace is a store of its own below this prefix: rights on it are given by prefix too. */
export const UNTRUSTED_PREFIX = 'untrusted/'
