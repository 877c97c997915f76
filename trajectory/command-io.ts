// Where the commands on trajectories write.
export interface CommandIo {
  readonly stdout: (text: string) => void
  readonly stderr: (text: string) => void
}
