// pilot trajectory …: the contract's own command, which is content and not engine; it is only reached from here.

import { trajectoryCommand } from '../../trajectory/command.ts'

export async function run(argv: readonly string[]): Promise<number> {
  return trajectoryCommand([...argv], {
    stdout: (text) => void process.stdout.write(text),
    stderr: (text) => void process.stderr.write(text),
  })
}
