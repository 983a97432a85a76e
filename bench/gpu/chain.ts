/** Kernels of ours one after the other, each on what the one before has written: timed as one. */
import type { ArgValue, Command, DeviceBuffer } from '../../src/runtime/device.ts'
import { isMatrix, memoryOf } from '../../src/runtime/device.ts'
import { type MeasureOptions, measure } from '../../src/runtime/measure.ts'
import type { OurDevice, OurRun } from './ours.ts'
import { measureBy, scoutBy, type Times } from './timing.ts'

export interface Link {
  readonly run: OurRun
  /** The input that is read from the link before; whatever it was bound to is left. */
  readonly from: string
}

export class Chain {
  readonly #on: OurDevice
  readonly #links: readonly Link[]
  readonly #commands: readonly Command[]

  constructor(on: OurDevice, links: readonly Link[]) {
    this.#on = on
    this.#links = links
    this.#commands = links.flatMap(({ run, from }, k) => {
      const own = run.prepared.executable.commands
      const before = links[k - 1]
      return before ? instead(own, placeOf(run, from), placeOf(before.run, before.run.output.name)) : own
    })
  }

  get last(): OurRun {
    return this.#links.at(-1)!.run
  }

  /** Runs once on poisoned outputs. */
  async run(): Promise<void> {
    for (const { run } of this.#links) await run.prepared.executable.poison()
    await this.#on.device.run(this.#commands)
  }

  scout(): Promise<number> {
    return scoutBy((options) => this.samples(options))
  }

  measure(scouted: number): Promise<Times> {
    return measureBy((options) => this.samples(options), scouted)
  }

  /** Microseconds. */
  async samples(options: MeasureOptions): Promise<readonly number[]> {
    return (await measure(this.#on.device, this.#commands, options)).times.map((t) => 1000 * t)
  }

  free(): void {
    for (const { run } of this.#links) run.free()
  }
}

/** Where a buffer of a prepared kernel lies, as its launches are told. */
function placeOf(run: OurRun, name: string): DeviceBuffer {
  const { commands, program } = run.prepared.executable
  const entries = new Map(program.plan.texts.flatMap((t) => t.entries).map((e) => [e.name, e.args] as const))
  for (const c of commands) {
    if (c.kind !== 'launch') continue
    const at = (entries.get(c.entry) ?? []).findIndex(
      (a) => (a.kind === 'buffer' && a.name === name) || ('buffer' in a && a.buffer === name),
    )
    const found = at < 0 ? undefined : memoryOf(c.args[at]!)
    if (found) return found
  }
  throw new Error(`no launch of ${run.ready.source.name} takes ${name}`)
}

/** The same launches with one memory in the place of another. */
function instead(commands: readonly Command[], old: DeviceBuffer, now: DeviceBuffer): Command[] {
  const placed = (value: ArgValue): ArgValue =>
    memoryOf(value) !== old ? value : isMatrix(value) ? { ...value, memory: now } : now
  return commands.map((c) => (c.kind === 'launch' ? { ...c, args: c.args.map(placed) } : c))
}
