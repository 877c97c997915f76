// The store of this machine: opens `artifacts/` and puts its parts together. See layout.ts for what is where,
// local/ for the parts, docs/decisions/0002 for why results lie in SQLite.

import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Digest } from '../model/digest.ts'
import { PilotError } from '../model/error.ts'
import type { LocalStore } from '../model/ports.ts'
import { foldersOf, LAYOUT_VERSION, type Layout, layoutOf, tempOf } from './layout.ts'
import { openBytes } from './local/bytes.ts'
import { openClaims } from './local/claims.ts'
import { type Database, openDatabase } from './local/database.ts'
import { onDisk, removeFolder } from './local/disk.ts'
import { type HotRows, openHotRows } from './local/hot.ts'
import { type Latest, openLatest } from './local/latest.ts'
import { becomeOwner, isAlive, type Owner } from './local/liveness.ts'
import { openResults } from './local/results.ts'
import type { Damage } from './local/seal.ts'
import { openStages } from './local/stages.ts'
import { openStats } from './local/stats.ts'
import { makeFolder, openTemps, type Temps } from './local/temps.ts'
import { openTrees, type Trees } from './local/trees.ts'

export type { Damage } from './local/seal.ts'

export interface LocalStoreOptions {
  /** Path of `artifacts/`; made where there is none. */
  readonly root: string
  readonly runId: string
  /** Name of this machine, for messages to others. */
  readonly host: string
  /** Told of each tree found damaged; it is in quarantine/ by then. */
  readonly onDamage: (digest: Digest, found: Damage) => void
  /** Told of what was repaired otherwise. */
  readonly onWarning?: (message: string) => void
  /** ms since the epoch. */
  readonly now?: () => number
}

/** What the parts of the store share; for sweep.ts, which is the store's other half. */
export interface LocalParts {
  readonly layout: Layout
  readonly db: Database
  readonly hot: HotRows
  readonly trees: Trees
  readonly temps: Temps
  readonly owner: string
}

const PARTS = new WeakMap<LocalStore, LocalParts>()

/** The parts of a store that `openLocalStore` made. */
export function partsOf(store: LocalStore): LocalParts {
  const parts = PARTS.get(store)
  if (!parts) throw new TypeError(`${store.name} is not a store opened by openLocalStore`)
  return parts
}

/** @throws PilotError `store-too-new`, or blamed on the environment where the disk refuses. */
export function openLocalStore(options: LocalStoreOptions): LocalStore {
  const layout = layoutOf(resolve(options.root))
  return onDisk(layout.root, () => open(layout, options))
}

function open(layout: Layout, options: LocalStoreOptions): LocalStore {
  const now = options.now ?? Date.now
  const warn = options.onWarning ?? ((message) => process.emitWarning(message))
  prepareFolders(layout)
  const db = openDatabase(layout, warn)
  const owner = becomeOwner(layout, options.runId)
  db.run('INSERT INTO owners VALUES (?, ?, ?)', owner.id, options.runId, Math.floor(now()))
  removeLeftovers(layout, db, owner.id)
  const hot = openHotRows(db)
  const trees = openTrees({ layout, db, hot, now, onDamage: options.onDamage })
  const results = openResults({ db, hot, trees, warn })
  const stats = openStats(db, now)
  const stages = openStages(db)
  const label = `run ${options.runId} on ${options.host}`
  const claims = openClaims({ layout, db, owner: owner.id, label, now })
  const temps = openTemps(layout, owner.id)
  const latest = openLatest(layout, db, temps)
  const flush = (): void => {
    stats.flush()
    stages.flush()
  }
  const store: LocalStore = {
    name: 'local',
    root: layout.root,
    stats,
    ...results,
    ...claims,
    ...openBytes({ layout, trees, temps, warn }),
    adoptTree: trees.adopt,
    openTree: trees.open,
    readTree: trees.read,
    isUntouched: trees.isUntouched,
    makeTemp: temps.make,
    runFolder: (runId) => makeFolder(`${layout.runs}/${runId}`),
    setLatest: (stage, tree) => onDisk(layout.latest, () => latest.point(stage, tree)),
    recordStage: stages.record,
    lastOf: stages.last,
    flush,
    [Symbol.dispose]: () => close({ layout, db, owner, latest, flush }),
  }
  PARTS.set(store, { layout, db, hot, trees, temps, owner: owner.id })
  return store
}

function prepareFolders(layout: Layout): void {
  // All of them each time: people remove folders here by hand.
  for (const folder of foldersOf(layout)) mkdirSync(folder, { recursive: true })
  if (!existsSync(layout.version)) {
    const temp = `${layout.version}.${process.pid}`
    writeFileSync(temp, `${LAYOUT_VERSION}\n`)
    renameSync(temp, layout.version)
  }
  const version = Number.parseInt(readFileSync(layout.version, 'utf8'), 10)
  if (version > LAYOUT_VERSION) {
    throw new PilotError({
      code: 'store-too-new',
      blame: 'user',
      what: `the store has format ${version}, this pilot knows formats up to ${LAYOUT_VERSION}`,
      where: layout.version,
      hint: 'update pilot in this project, or point it at another store',
    })
  }
}

/** Removes what processes that are dead left: their temporary folders, claims and rows. */
function removeLeftovers(layout: Layout, db: Database, own: string): void {
  const dead = new Set<string>()
  for (const name of readdirSync(layout.tmp)) {
    if (name !== own && !isAlive(layout, name)) dead.add(name)
  }
  for (const [id] of db.all('SELECT id FROM owners')) {
    const name = String(id)
    if (name !== own && !isAlive(layout, name)) dead.add(name)
  }
  for (const name of dead) {
    removeFolder(tempOf(layout, name))
    db.run('DELETE FROM claims WHERE owner = ?', name)
    db.run('DELETE FROM owners WHERE id = ?', name)
  }
}

interface Opened {
  readonly layout: Layout
  readonly db: Database
  readonly owner: Owner
  readonly latest: Latest
  readonly flush: () => void
}

/** What cannot be written any more (the disk is full) is lost; the locks go in any case. */
function close({ layout, db, owner, latest, flush }: Opened): void {
  try {
    flush()
    latest.close()
    removeFolder(tempOf(layout, owner.id))
    db.write(() => {
      db.run('DELETE FROM claims WHERE owner = ?', owner.id)
      db.run('DELETE FROM owners WHERE id = ?', owner.id)
    })
  } finally {
    owner[Symbol.dispose]()
    db[Symbol.dispose]()
  }
}
