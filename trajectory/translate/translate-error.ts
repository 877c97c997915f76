// Why a source is refused: each fault by its rule, with the rollout and the place in the source.

/** Rules of translation; those of the contract itself are in ../rule.ts. */
export type TranslateRule =
  | 'launcher-field'
  | 'source-version'
  | 'source-shape'
  | 'policy-version'
  | 'foreign-event'
  | 'group-identity'
  | 'trainable-observation'
  | 'missing-reward'
  | 'contract'

export interface TranslateFault {
  readonly rule: TranslateRule
  /** Null where the fault is of no single rollout. */
  readonly rollout: string | null
  /** JSON path within the source, or within the launcher (`$launcher…`). */
  readonly path: string
  readonly message: string
}

/** Nothing is translated where one fault is found: a part of a group is another group. */
export class TranslateError extends Error {
  readonly faults: readonly TranslateFault[]

  constructor(faults: readonly TranslateFault[]) {
    const [first] = faults
    const more = faults.length > 1 ? ` (and ${faults.length - 1} more)` : ''
    super(first ? `${formatTranslateFault(first)}${more}` : 'a fault without words')
    this.name = 'TranslateError'
    this.faults = faults
  }
}

/** `[rule] rollout path: message` */
export function formatTranslateFault({ rule, rollout, path, message }: TranslateFault): string {
  return `[${rule}] ${rollout === null ? '' : `rollout ${rollout}, `}${path}: ${message}`
}
