/** The auto-scheduler: formats and sketches of a kernel as a space, from what its nests are. */
import { expectArgument } from '../api/argument-checks.ts'
import type { Kernel } from '../api/kernel.ts'
import { fail } from '../ast/diagnostic.ts'
import { formatChoices } from './format-choices.ts'
import { check } from './points.ts'
import { Decisions, Draft, openIn, type SketchDevice, sketch } from './sketch/index.ts'
import type { KernelSpace, OpenDecision, Point } from './types.ts'

export interface SketchOptions {
  readonly device: SketchDevice
  /**
   * By the name of a sparse tensor, the formats to choose among, as after `as`: `{ A: ['csr', 'bsr(8)'] }`; `''` leaves it
   * as it is declared. Tensors that are not named stay as they are. Left out: those of the kernel's program that fit.
   */
  readonly formats?: Readonly<Record<string, readonly string[]>>
}

export interface SketchSpace extends KernelSpace<Kernel> {
  /** The point that the rules hold for the best without data. */
  readonly guess: Point
}

/**
 * The space of schedules that follow from a kernel's loops: for each sparse tensor its format, then for each nest how its
 * loops are dealt out, tile sizes, vectors, unrolling and what is kept in registers. For kernels without steps on loops.
 *
 * @throws SptError `api/argument`; `search/has-schedule` where steps on loops have been made
 */
export function sketches(kernel: Kernel, options: SketchOptions): SketchSpace {
  const { device } = options
  expectArgument(['cpu', 'webgpu', 'cuda'].includes(device), 'device', device, 'cpu, webgpu or cuda')
  if (kernel.compilation.onLoops)
    fail({
      code: 'search/has-schedule',
      message: `${kernel.name} has steps on loops already`,
      expected: 'a kernel without a schedule, or with steps on coordinates alone',
      hint: 'take the sketches of the kernel before those steps',
    })
  const formats = formatChoices(kernel, options.formats)
  const stored = new Map<string, Kernel>()
  const base = (d: Decisions): Kernel => {
    const chosen = formats.map((f) => f.decide(d))
    const key = chosen.join('\n')
    const known = stored.get(key)
    if (known) return known
    const made = formats.reduce((k, f, n) => (chosen[n] === '' ? k : k.as(f.buffer, chosen[n]!)), kernel)
    stored.set(key, made)
    return made
  }
  const guessed = new Decisions(null)
  sketch(base(guessed), device, guessed)
  const space: SketchSpace = {
    guess: guessed.taken,
    name: kernel.name,
    next: (partial: Point): OpenDecision | null => openIn(partial, (d) => void sketch(base(d), device, d)),
    kernel(point: Point): Kernel {
      const d = new Decisions(check(space, point))
      const draft = new Draft(base(d))
      sketch(draft.kernel, device, d)(draft)
      return draft.kernel
    },
  }
  return space
}
