// The errors of capture: what cannot be part of a tree, and whose fault it is.

import { type Blame, PilotError } from '../model/error.ts'

/** What is being hashed: words and blame for its errors. */
export interface Subject {
  /** First half of an error code: `output-escapes`, `input-escapes`. */
  readonly noun: 'output' | 'input'
  readonly blame: Blame
}

export const OUTPUT: Subject = { noun: 'output', blame: 'stage' }
export const INPUT: Subject = { noun: 'input', blame: 'user' }

export function escapes(subject: Subject, path: string, target: string): PilotError {
  return new PilotError({
    code: `${subject.noun}-escapes`,
    blame: subject.blame,
    what: `the link "${path}" leaves its folder: it points to "${target}"`,
    hint: 'copy what it points to, or make it a relative link within the folder',
  })
}

export function isSpecial(subject: Subject, path: string, what: string): PilotError {
  return new PilotError({
    code: `${subject.noun}-special`,
    blame: subject.blame,
    what: `"${path}" is ${what}: only files, folders and links can be kept`,
    hint: 'remove it before the stage ends, or keep it outside the folder',
  })
}

export function isMisnamed(subject: Subject, folder: string, name: Buffer): PilotError {
  const shown = `${name.toString('latin1')}`.replace(
    /[^\x20-\x7e]/g,
    (c) => `\\x${c.charCodeAt(0).toString(16)}`,
  )
  return new PilotError({
    code: `${subject.noun}-name`,
    blame: subject.blame,
    what: `the name "${shown}" in "${folder || '.'}" is not valid UTF-8`,
    hint: 'rename it: such a name cannot be kept on every system',
  })
}

export function isUnreadable(subject: Subject, path: string, cause: unknown): PilotError {
  return new PilotError({
    code: `${subject.noun}-unreadable`,
    blame: subject.blame,
    what: `"${path}" cannot be read`,
    hint: 'give the owner read permission on it',
    cause,
  })
}

export function isChanging(subject: Subject, path: string): PilotError {
  return new PilotError({
    code: `${subject.noun}-changed`,
    blame: subject.blame,
    what: `"${path}" changed while it was hashed`,
    hint:
      subject.noun === 'output'
        ? 'end every process of the stage before the stage itself ends'
        : 'let the file rest, then run again',
  })
}
