/** Measures the phases of a command. Phases do not overlap and have no gaps, so their times add up to the total. */
import type { Io } from '../output/io.ts'

/** Phases in order: the text of progress on terminals, and the name in reports. Random data are part of `build`. */
export const PHASES = {
  parse: ['reading the program', 'read the program'],
  lower: ['lowering', 'lower'],
  read: ['reading data', 'read data'],
  open: ['opening the device', 'open the device'],
  choose: ['choosing a schedule', 'select a schedule'],
  compile: ['compiling', 'compile'],
  random: ['', 'random data'],
  build: ['building formats and random data', 'build formats'],
  upload: ['uploading data', 'upload'],
  runs: ['running', 'run'],
  verify: ['comparing with the reference', 'reference'],
  write: ['writing results', 'write'],
  count: ['counting nonzeros', 'count nonzeros'],
} as const

export type Phase = keyof typeof PHASES

export class PhaseTimer {
  readonly #times = new Map<Phase, number>()
  #since = performance.now()

  constructor(
    private now: Phase,
    private readonly io: Io,
  ) {
    this.#say(now)
  }

  begin(phase: Phase): void {
    if (phase === this.now) return
    this.#end()
    this.now = phase
    this.#say(phase)
  }

  /** Ends the current phase. Returns milliseconds of each phase and the total. */
  end(): Readonly<Record<Phase | 'total', number>> {
    this.#end()
    const names = Object.keys(PHASES) as Phase[]
    const times = Object.fromEntries(names.map((p) => [p, this.#times.get(p) ?? 0])) as Record<Phase, number>
    return { ...times, total: names.reduce((sum, p) => sum + times[p], 0) }
  }

  #end(): void {
    const now = performance.now()
    this.#times.set(this.now, (this.#times.get(this.now) ?? 0) + now - this.#since)
    this.#since = now
    this.io.progress?.('')
  }

  #say(phase: Phase): void {
    this.io.progress?.(`${PHASES[phase][0]} …`)
  }
}

// Untimed runs: V8 compiles a kernel during its first ones, and drivers load it.

/** A kernel counts as warm after this many milliseconds or runs. */
const WARM_MS = 100
const WARM_RUNS = 50

interface WarmUp {
  /** Milliseconds of the first run. */
  readonly first: number
  readonly runs: number
}

export async function warmUp(run: () => Promise<void>, now = () => performance.now()): Promise<WarmUp> {
  const start = now()
  await run()
  const first = now() - start
  let runs = 1
  for (; runs < WARM_RUNS && now() - start < WARM_MS; runs++) await run()
  return { first, runs }
}
