// SIGINT and SIGTERM as abort signals: once, start nothing more and TERM what runs; twice, KILL.

export interface Interrupts extends Disposable {
  readonly stop: AbortSignal
  readonly kill: AbortSignal
}

export function openInterrupts(): Interrupts {
  const stop = new AbortController()
  const kill = new AbortController()
  const onSignal = (signal: NodeJS.Signals) => {
    if (stop.signal.aborted) {
      kill.abort()
      return
    }
    process.stderr.write(`\n${signal}: stopping; once more to kill\n`)
    stop.abort()
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const signal of signals) process.on(signal, onSignal)
  return {
    stop: stop.signal,
    kill: kill.signal,
    [Symbol.dispose]: () => {
      for (const signal of signals) process.off(signal, onSignal)
    },
  }
}
