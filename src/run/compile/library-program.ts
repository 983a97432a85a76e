/** A program that is one call of a library routine. Its arrays are those of an equivalent kernel. */
import type { KernelMatch } from '../../analysis/kernel-pattern.ts'
import { indicesOf, indptrOf, isSparse } from '../../ir/coordinates/axis.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { Plan } from '../../ir/statements/loops.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import type { Device, DeviceBuffer, Library, Operands } from '../../runtime/device.ts'
import type { Routine } from '../../runtime/library-text.ts'
import type { Bound } from '../bind/index.ts'
import { elements } from '../execution/buffer-layout.ts'
import type { Program, Sources } from './compiled-program.ts'

/** A library routine that is equivalent to a kernel. */
export interface MatchedRoutine {
  readonly library: Library
  readonly routine: Routine
  readonly variant: string
  /** Maps names of the routine's pattern kernel (`pattern`) to the kernel. */
  readonly match: KernelMatch
  readonly pattern: Kernel1
}

/**
 * Returns a program that calls the routine. `whole`: the plan of the kernel for the device, whose arrays are used and whose steps are not.
 */
export function libraryProgram(device: Device, whole: Plan, of: MatchedRoutine, sources: Sources): Program {
  const buffers = whole.buffers.filter((b) => b.role !== 'local' && b.name !== whole.lostWrites?.buffer)
  const plan: Plan = { ...whole, buffers, steps: [], lostWrites: undefined }
  let live = true
  return {
    device,
    plan,
    arenas: [],
    texts: [],
    sources,
    modules: new Map(),
    get live() {
      return live
    },
    instead(bound, memory) {
      const call = of.library.prepare(of.routine, of.variant, operandsOf(of, plan, bound, memory))
      const { name } = call.text
      return {
        commands: [{ kind: 'launch', module: call, entry: name, grid: [1, 1, 1], args: call.buffers }],
        free: () => call.release(),
      }
    },
    release() {
      live = false
    },
  }
}

function operandsOf(
  { match, pattern }: MatchedRoutine,
  plan: Plan,
  bound: Bound,
  memory: ReadonlyMap<string, DeviceBuffer>,
): Operands {
  const buffers = [...match.buffers].flatMap(([name, is]): [string, DeviceBuffer][] => {
    const there = memory.get(is)
    return there ? [[name, there]] : []
  })
  const axes = pattern.axes
    .filter((a) => isSparse(a))
    .map((a): [string, NonNullable<ReturnType<Operands['axes']['get']>>] => {
      const is = match.axes.get(a.name)!
      const coordinates = plan.buffers.find((b) => b.name === indicesOf(is))!
      return [
        a.name,
        {
          offsets: memory.get(indptrOf(is))!,
          indices: memory.get(coordinates.name)!,
          entries: elements(coordinates, bound),
        },
      ]
    })
  const numbers = [...match.params].map(([name, e]) => [name, evaluate(e, bound.params)] as const)
  return { buffers: new Map(buffers), numbers: new Map(numbers), axes: new Map(axes) }
}
