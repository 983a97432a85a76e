/** Points of sketches' spaces of generated kernels, drawn decision by decision. */
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import type { AnyFormat } from '../../src/ir/formats/format.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import type { Step } from '../../src/schedule/steps/resolve.ts'
import type { Schedulable, SketchDevice } from '../../src/sketch/index.ts'
import { applySketch, Decisions, nextDecision, sketch } from '../../src/sketch/index.ts'
import type { Choices } from './choices.ts'
import { type Scheduled, schedule, withTrace } from './schedule-gen.ts'

/** A compilation as what sketches are made of. */
class Scheduling implements Schedulable<Scheduling> {
  readonly compilation: Compilation

  constructor(compilation: Compilation) {
    this.compilation = compilation
  }

  apply(steps: readonly Step[]): Scheduling {
    return new Scheduling(steps.reduce((c, s) => c.step(s), this.compilation))
  }

  repeated(repeat: Parameters<Compilation['repeated']>[0]): Scheduling {
    return new Scheduling(this.compilation.repeated(repeat))
  }
}

/** Some steps on coordinates, then a point of the space; without steps on loops where that is refused. */
export const sketching =
  (device: SketchDevice) =>
  (c: Choices, start: Compilation, formats: ReadonlyMap<string, AnyFormat>): Scheduled => {
    const before = schedule(c, start, formats, 0)
    const kernel = new Scheduling(before.compilation)
    const point: Record<string, number | string> = {}
    let compilation: Compilation
    try {
      for (;;) {
        const open = nextDecision(point, (d) => void sketch(kernel, { device }, d))
        if (!open) break
        if (open.values.length < 2) throw new Error(`${open.name} is no decision`)
        point[open.name] = c.pick(open.values)
      }
      // The best guess is what kernels without a schedule run as.
      const decided = new Decisions(c.chance(25) ? null : point)
      compilation = applySketch(kernel, { device }, decided).compilation
    } catch (e) {
      if (!(e instanceof SptError)) throw withTrace(e, [...before.trace, JSON.stringify(point)])
      return before
    }
    const trace = [...before.trace, JSON.stringify(point)]
    return { compilation, accepted: before.accepted, trace }
  }
