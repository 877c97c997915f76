// The GPUs this run may give out: those of an inherited CUDA_VISIBLE_DEVICES, or all of the machine.

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Ids as CUDA_VISIBLE_DEVICES takes them: indices or UUIDs. Empty where there is no GPU or none is visible. */
export async function gpuIds(
  environment: Readonly<Record<string, string | undefined>>,
): Promise<readonly string[]> {
  const inherited = environment['CUDA_VISIBLE_DEVICES']
  if (inherited !== undefined)
    return inherited
      .split(',')
      .map((id) => id.trim())
      .filter((id) => id !== '' && id !== '-1')
  try {
    const { stdout } = await run('nvidia-smi', ['--query-gpu=index', '--format=csv,noheader'], {
      env: environment,
    })
    return stdout
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => /^\d+$/.test(line))
  } catch {
    // No nvidia-smi, or no device behind it.
    return []
  }
}
