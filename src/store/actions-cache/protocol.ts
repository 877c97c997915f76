// What the store and its worker processes say to each other, one message each way for an operation.

export interface CacheOrder {
  readonly type: 'save' | 'restore' | 'lookup'
  /** Fresh folder of this operation alone, absolute, without characters that a shell would take apart. What is saved
   *  is `bundle` in it, and what is restored appears there. */
  readonly folder: string
  /** Of `save` the whole key; else how it begins. */
  readonly key: string
}

export interface CacheReply {
  /** The whole key that was found, or saved; null where there is none. */
  readonly key: string | null
  /** What the library printed meanwhile: the only place where it says why. */
  readonly text: string
}

/** The version of an entry is made of the paths as they are spelled, so this is one word for ever. */
export const BUNDLE = 'bundle'
