/** Random steps on whatever kernel there is; most are refused. */
import fc from 'fast-check'
import { segmentsOf } from '../../src/analysis/loops/segmented-loops.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { THREAD_AXES } from '../../src/ir/expressions/expr.ts'
import { loopsOf } from '../../src/ir/statements/definitions.ts'
import type { For, Kernel2 } from '../../src/ir/statements/loops.ts'
import { LOOP_STEPS } from '../../src/schedule/primitives.ts'
import { apply, type ScheduleState, start } from '../../src/schedule/state/state.ts'
import type { LoopStep } from '../../src/schedule/steps/step-data.ts'
import { drawnStep } from './draw-step.ts'

/** Numbers that choose one step. */
export const choices = fc.array(fc.nat({ max: 9999 }), { minLength: 6, maxLength: 6 })

/** What needs more than luck: a declared instruction, and data for which it holds. */
const NEVER = ['tensorize', 'require']
/** What is drawn more often, since it is refused more often, or since much depends on it. */
const OFTEN = ['split', 'reorder', 'bind', 'cache_read', 'cache_write', 'merge'] as const
const KINDS = [...Object.keys(LOOP_STEPS).filter((w) => !NEVER.includes(w)), ...OFTEN] as LoopStep['kind'][]

/** The names by which the loops can be meant now, outermost first; qualified where several share one. */
function namesOf(loops: readonly For[]): readonly string[] {
  const count = (name: string): number => loops.filter((l) => l.name === name).length
  return loops.map((l) => (count(l.name) > 1 ? `${l.nest}.${l.name}` : l.name))
}

export function stepFor(state: ScheduleState, [kind, a, b, c, e, f]: readonly number[]): LoopStep {
  const loops = loopsOf(state.kernel.body)
  const names = namesOf(loops)
  const name = (n: number): string => names[n % Math.max(1, names.length)] ?? 'i'
  const nests = [...new Set(loops.map((l) => l.nest))]
  const buffers = state.kernel.buffers.map((x) => x.name)
  const pick = <T>(xs: readonly T[], n: number): T => xs[n % xs.length]!
  /** A loop and one directly inside of it, where there is one. */
  const inside = (n: number): readonly string[] => {
    const k = n % Math.max(1, loops.length)
    const child = loops[k]?.body.find((s) => s.kind === 'for')
    const index = child ? loops.indexOf(child) : -1
    return index < 0 ? [name(k), name(k + 1)] : [name(k), name(index)]
  }
  const tops = (n: number): string => {
    const top = state.kernel.body.flatMap((s) => (s.kind === 'for' ? [s] : []))
    return top.length > 0 ? name(loops.indexOf(pick(top, n))) : 'i'
  }
  const drawn = (among: readonly string[]): LoopStep => {
    const numbers = [a!, b!, c!, e!, f!]
    const next = (): number => numbers.push(numbers.shift()!) && numbers.at(-1)!
    return drawnStep(LOOP_STEPS[word], {
      below: (n) => next() % n,
      loop: () => name(next()),
      buffer: () => pick(among, next()),
      nest: () => pick(['produce', ...nests], next()),
    })
  }
  const word = pick(KINDS, kind!)
  switch (word) {
    case 'fuse':
      return { kind: 'fuse', loops: inside(a!) }
    case 'reorder': {
      const pair = inside(a!)
      if (b! % 2 === 0) return { kind: 'reorder', loops: [...pair].reverse() }
      return {
        kind: 'reorder',
        loops: [name(a!), name(b!), name(c!)].filter((x, k, l) => l.indexOf(x) === k),
      }
    }
    case 'tile':
      return { kind: 'tile', loops: inside(a!), by: [1 + (b! % 3), 1 + (c! % 3)] }
    case 'bind':
      if (e! % 3 === 0) return { kind: 'bind', bindings: [{ loop: tops(a!), to: 'block.x' }] }
      return { kind: 'bind', bindings: [{ loop: name(a!), to: pick(THREAD_AXES, b!) }] }
    case 'cluster':
      return { kind: 'cluster', loop: tops(a!), by: 2 + (b! % 3) }
    case 'pipeline': {
      const copying = loops.findIndex((l) =>
        l.body.some((s) => s.kind === 'alloc' && s.buffer.scope === 'shared'),
      )
      const loop = name(copying < 0 || b! % 4 === 0 ? a! : copying)
      return { kind: 'pipeline', loop, by: 2 + (c! % 3), ...(e! % 3 === 0 ? { over: name(f!) } : {}) }
    }
    case 'accumulate': {
      const over = loops.findIndex((l) => typeof segmentsOf(l) !== 'string')
      const segments = over < 0 ? '' : segmentsOf(loops[over]!)
      const target = typeof segments === 'string' ? pick(buffers, a!) : segments.reduce.targets[0]!.buffer
      return { kind: 'accumulate', buffer: target, loop: name(over < 0 ? b! : over) }
    }
    case 'merge': {
      const top = [...new Set(state.kernel.body.flatMap((s) => (s.kind === 'for' ? [s.nest] : [])))]
      const bound = top.filter((n) =>
        state.kernel.body.some((s) => s.kind === 'for' && s.nest === n && s.mode.kind === 'bind'),
      )
      return { kind: 'merge', nests: a! % 4 === 0 ? top.slice(b! % 2) : bound }
    }
    case 'join': {
      const top = state.kernel.body.flatMap((s) => (s.kind === 'for' ? [s.nest] : []))
      return { kind: 'join', nests: top.slice(a! % 2), at: tops(b!) }
    }
    case 'cache_write':
    case 'atomic':
    case 'combine':
      // Index arrays come first.
      return drawn(buffers.slice(-5))
    default:
      return drawn(buffers)
  }
}

/** The state after the steps, or the code of the first refusal; anything but an `SptError` fails the test. */
export function after(state: ScheduleState, ...steps: readonly LoopStep[]): ScheduleState | string {
  try {
    return steps.reduce(apply, state)
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    return e.diagnostics[0]!.code
  }
}

/** What random steps make of a kernel, those that are refused left out. */
export function drawnState(kernel: Kernel2, numbers: readonly (readonly number[])[]): ScheduleState {
  let state = start(kernel)
  for (const n of numbers) {
    const next = after(state, stepFor(state, n))
    if (typeof next !== 'string') state = next
  }
  return state
}
