// One command, timed from outside: wall time, and the peak memory of the process itself.

import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'

export interface Timed {
  readonly wallMs: number
  /** Largest resident memory seen (sampled every 10 ms; Linux), in MB; 0 where nothing was seen. */
  readonly peakMb: number
}

/** Runs a command to its end. @throws Error with what it printed, where it does not exit 0 */
export function timed(argv: readonly string[], cwd: string): Promise<Timed> {
  const [program = '', ...rest] = argv
  const began = performance.now()
  const child = spawn(program, rest, {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, CI: '1' },
  })
  let peakMb = 0
  let text = ''
  const look = setInterval(() => {
    peakMb = Math.max(peakMb, peakOf(child.pid))
  }, 10)
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      text = (text + chunk.toString()).slice(-4_000)
    })
  }
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => {
      clearInterval(look)
      const wallMs = performance.now() - began
      if (code === 0) resolve({ wallMs, peakMb })
      else reject(new Error(`${argv.join(' ')} exited with ${code}:\n${text}`))
    })
  })
}

function peakOf(pid: number | undefined): number {
  try {
    const text = readFileSync(`/proc/${pid}/status`, 'utf8')
    return Number(/^VmHWM:\s*(\d+) kB$/m.exec(text)?.[1] ?? 0) / 1_000
  } catch {
    return 0
  }
}
