// pilot cache ls and pilot cache explain KEY: what the store beyond this machine holds, and why a result of it is used or not.

import { noRemote } from '../conduct/remote.ts'
import type { Flags } from '../config.ts'
import type { Digest } from '../model/digest.ts'
import { EXIT_CODES, PilotError } from '../model/error.ts'
import { formatBytes } from '../report/format.ts'
import { formatTable } from '../report/status.ts'
import { AC } from '../store/remote/keys.ts'
import type { RemoteStore } from '../store/remote/store.ts'
import { openRemoteSession, print } from './session.ts'

type CacheFlags = Flags & { readonly json?: boolean | undefined }

export async function cacheCommand(
  verb: string,
  words: readonly string[],
  flags: CacheFlags,
): Promise<number> {
  using session = await openRemoteSession(flags)
  if (!session.stores) throw noRemote()
  if (verb === 'ls') return list(session.stores.readers, flags)
  const [prefix] = words
  if (verb === 'explain' && prefix !== undefined) return explain(session.stores.readers, prefix, flags)
  throw new PilotError({
    code: 'invalid-flag',
    blame: 'user',
    what: `"cache ${[verb, ...words].join(' ')}" is no command`,
    hint: 'pilot cache ls, or pilot cache explain KEY',
  })
}

async function list(readers: readonly RemoteStore[], { json }: CacheFlags): Promise<number> {
  const rows: string[][] = []
  for (const store of readers) {
    for await (const { key } of store.objects.list(AC)) {
      // The name of an entry is a digest; another fails its check.
      const { entry } = await store.read(key.slice(AC.length) as Digest)
      if (!entry) continue
      const { result, attestation } = entry
      const bytes = Object.values(result.outputs).reduce((sum, output) => sum + output.sizeBytes, 0)
      const { stage, runId, startedAt } = result.record
      const signed = (attestation?.signatures.length ?? 0) > 0
      if (json)
        print(
          JSON.stringify({
            store: store.name,
            key: result.actionDigest,
            stage,
            runId,
            startedAt,
            bytes,
            signed,
          }),
        )
      else
        rows.push([
          result.actionDigest.slice(0, 12),
          stage,
          formatBytes(bytes),
          startedAt,
          runId,
          signed ? 'signed' : '',
        ])
    }
  }
  if (!json) print(rows.length > 0 ? formatTable(rows) : 'nothing is kept there')
  return EXIT_CODES.ok
}

async function explain(
  readers: readonly RemoteStore[],
  prefix: string,
  { json }: CacheFlags,
): Promise<number> {
  const keys = new Set<Digest>()
  for (const store of readers) {
    for await (const { key } of store.objects.list(AC + prefix)) keys.add(key.slice(AC.length) as Digest)
  }
  if (keys.size !== 1) {
    throw new PilotError({
      code: 'no-entry',
      blame: 'user',
      what: `${keys.size === 0 ? 'no entry' : `${keys.size} entries`} of the store begin with "${prefix}"`,
      hint: 'the keys are in: pilot cache ls',
    })
  }
  const [key] = keys
  for (const store of readers) {
    const { entry, refused } = key ? await store.explain(key) : {}
    if (!entry) continue
    const { result, attestation, fence } = entry
    const used = refused === undefined
    if (json) {
      print(
        JSON.stringify({
          store: store.name,
          key,
          used,
          refused,
          fence,
          signatures: attestation?.signatures,
          result,
        }),
      )
      continue
    }
    const outputs = Object.entries(result.outputs).map(([name, { digest, sizeBytes }]) => [
      `output ${name}`,
      `${digest.slice(0, 12)}  ${formatBytes(sizeBytes)}`,
    ])
    const { stage, runId, startedAt, host, isolation } = result.record
    print(
      formatTable([
        ['store', store.name],
        ['used', used ? 'yes' : `no: ${refused}`],
        ['stage', stage],
        ['made by', `run ${runId}, ${startedAt}, ${host.os} ${host.arch}, isolation ${isolation}`],
        ['signed by', attestation?.signatures.map(({ keyid }) => keyid.slice(0, 12)).join(', ') || 'nobody'],
        ['tree', result.tree.slice(0, 12)],
        ...outputs,
        ['argv', result.action.argv.join(' ')],
      ]),
    )
  }
  return EXIT_CODES.ok
}
