/**
 * Default schedules of loop nests, for devices with threads: rows over blocks and columns over the threads of a block
 * if the loop nest has both, otherwise its outermost loop over blocks of threads. Iterations that would combine use
 * partial results, so results are reproducible. Correct for any kernel, fast for few.
 */

import { rolesIn } from '../analysis/loops/segmented-loops.ts'
import { resultOrError, SptError } from '../ast/diagnostics/diagnostic.ts'
import { builderDefaults } from '../ir/coordinates/runtime-lists.ts'
import { loopsOf, perfectNest } from '../ir/statements/definitions.ts'
import type { For, Kernel2 } from '../ir/statements/loops.ts'
import { reductionsOf } from '../ir/statements/reductions.ts'
import { isInt } from '../ir/values/dtype.ts'
import { overParams } from './legality/checks.ts'
import { apply, type ScheduleState } from './state/state.ts'
import type { LoopStep } from './steps/step-data.ts'

/** Threads of a block for one loop; columns and rows of a block for two loops. */
const THREADS = 64
const COLUMNS = 32
const ROWS = 4
/** Number of partial results if a whole loop adds to one element. */
const SHARES = 1024

/**
 * Returns the state with a default schedule for each loop nest that binds nothing; a loop nest without a legal schedule
 * stays on one thread. Each loop nest of `state` gets partial results at most once, and the second passes that add up
 * partial results never do: a second pass combines, too, and would create passes without end.
 */
export function automatic(state: ScheduleState): ScheduleState {
  return freeNests(state.kernel).reduce((before, nest) => {
    const known = new Set(freeNests(before.kernel))
    const own = (s: ScheduleState): readonly string[] =>
      freeNests(s.kernel).filter((name) => name === nest || !known.has(name))
    const separate = separated(before, nest)
    const now = own(separate).reduce((s, name) => {
      const top = topOf(s, name)
      return top ? withPartialResults(s, top) : s
    }, separate)
    return own(now).reduce(onBlocks, now)
  }, state)
}

/** Returns the state with single-thread default schedules, for loop nests that no step has changed. */
export function alone(state: ScheduleState): ScheduleState {
  let first = state
  while (first.before) first = first.before
  const made = new Set(first.kernel.body)
  const untouched = state.kernel.body.filter((s): s is For => s.kind === 'for' && made.has(s))
  return untouched.reduce((before, top) => {
    const own = builderDefaults(before.kernel).filter((d) => d.singleThread && d.nest === top.nest)
    for (const { steps } of own) {
      const next = attempt(before, steps as readonly LoopStep[])
      if (next) return next
    }
    return before
  }, state)
}

/**
 * Returns the state with each statement of a loop nest in a separate one, if iterations combine, several statements at
 * a time cannot use partial results, and the fission is legal.
 */
function separated(state: ScheduleState, nest: string): ScheduleState {
  const top = topOf(state, nest)
  const chain = top?.reduce ? perfectNest(top) : []
  const several = (chain.at(-1)?.body.length ?? 0) > 1
  if (!several || combined(state, top!)) return state
  const known = new Set(freeNests(state.kernel))
  const next = attempt(
    state,
    chain.toReversed().map((l) => ({ kind: 'fission', loop: ref(l), after: 1 })),
  )
  if (!next) return state
  const rest = freeNests(next.kernel).filter((name) => !known.has(name))
  return rest.reduce(separated, next)
}

const freeNests = (k: Kernel2): readonly string[] =>
  k.body.flatMap((s) => (s.kind === 'for' && isFree(s) ? [s.var] : []))

const topOf = (state: ScheduleState, name: string): For | undefined =>
  state.kernel.body.find((s): s is For => s.kind === 'for' && s.var === name)

function onBlocks(state: ScheduleState, name: string): ScheduleState {
  const top = topOf(state, name)
  if (!top) return state
  for (const steps of candidates(top, state.kernel)) {
    const next = attempt(state, steps)
    if (next) return next
  }
  return state
}

const isFree = (l: For): boolean => loopsOf([l]).every((x) => x.mode.kind !== 'bind')

function attempt(state: ScheduleState, steps: readonly LoopStep[]): ScheduleState | undefined {
  const made = resultOrError(() => steps.reduce(apply, state))
  return made instanceof SptError ? undefined : made
}

/**
 * Returns the state with partial results if iterations of the outermost loop combine. If `combine` is illegal, or its
 * pass has as many loops that all combine, the outermost loop is split and factored instead; if that is illegal too,
 * the state is unchanged.
 */
function withPartialResults(state: ScheduleState, top: For): ScheduleState {
  if (!top.reduce || combinedIn(top).atomic || combinedIn(top).buffer === undefined) return state
  const known = new Set(freeNests(state.kernel))
  const next = combined(state, top)
  const passes = next?.kernel.body.filter((s): s is For => s.kind === 'for' && !known.has(s.var)) ?? []
  const asLong = (pass: For): boolean => {
    const loops = loopsOf([pass])
    return loops.every((l) => l.reduce) && loops.length >= loopsOf([top]).length
  }
  if (next && !passes.some(asLong)) return next
  const [outer, inner] = [`${top.var}_part`, `${top.var}_share`]
  return (
    attempt(state, [
      { kind: 'split', loop: ref(top), by: SHARES, into: [outer, inner] },
      { kind: 'rfactor', loop: named(top, inner) },
    ]) ?? state
  )
}

function combinedIn(top: For): { readonly buffer: string | undefined; readonly atomic: boolean } {
  const reductions = reductionsOf([top]).map((r) => r.reduce)
  return { buffer: reductions[0]?.targets[0]?.buffer, atomic: reductions.some((r) => r.atomic) }
}

function combined(state: ScheduleState, top: For): ScheduleState | undefined {
  const { buffer } = combinedIn(top)
  return buffer === undefined ? undefined : attempt(state, [{ kind: 'combine', buffer, nest: top.nest }])
}

function candidates(top: For, kernel: Kernel2): readonly (readonly LoopStep[])[] {
  const chain = perfectNest(top)
  const canBind = (l: For): boolean => l.mode.kind === 'serial' && overParams({ kernel }, l.extent)
  const spatial = chain.filter((l) => !l.reduce && canBind(l))
  const column = spatial.findLast((l) => l !== top)
  const scatter = column ? undefined : scatteredIn(top, chain)
  const own = builderDefaults(kernel).filter((d) => d.nest === top.nest && !d.singleThread)
  return [
    ...own.map((d) => d.steps as readonly LoopStep[]),
    ...(scatter && canBind(top) && canBind(scatter.loop)
      ? [[{ kind: 'atomic', buffer: scatter.buffer } as const, ...tiled(top, scatter.loop, chain)]]
      : []),
    ...(column && canBind(top) ? [tiled(top, column, chain)] : []),
    ...(canBind(top) ? [onThreads(top, [])] : []),
    // A spatial loop inside of loops that cannot be bound moves to the outside.
    ...spatial
      .filter((l) => l !== top)
      .map((l) => onThreads(l, [{ kind: 'reorder', loops: [l, ...chain.filter((x) => x !== l)].map(ref) }])),
  ]
}

/**
 * Returns the innermost loop that combines integers into changing elements, with the buffer; undefined if there is no
 * such loop. Atomic integer updates give the same result in every run.
 */
function scatteredIn(
  top: For,
  chain: readonly For[],
): { readonly loop: For; readonly buffer: string } | undefined {
  const [only, more] = reductionsOf([top])
  const [target] = only?.reduce.targets ?? []
  if (!target || more || !isInt(target.dtype)) return undefined
  const roles = rolesIn(top)
  const loop = chain.findLast((l) => l !== top && roles.get(l.var) === 'scatter')
  return loop && { loop, buffer: target.buffer }
}

const ref = (l: For) => ({ var: l.var })
const named = (l: For, name: string): string => `${l.nest}.${name}`

function onThreads(l: For, before: readonly LoopStep[]): readonly LoopStep[] {
  const [outer, inner] = [`${l.var}_block`, `${l.var}_thread`]
  return [
    ...before,
    { kind: 'split', loop: ref(l), by: THREADS, into: [outer, inner] },
    {
      kind: 'bind',
      bindings: [
        { loop: named(l, outer), to: 'block.x' },
        { loop: named(l, inner), to: 'thread.x' },
      ],
    },
  ]
}

/** Returns a schedule in which neighbouring threads have neighbouring columns. */
function tiled(row: For, column: For, chain: readonly For[]): readonly LoopStep[] {
  const [ro, ri] = [`${row.var}_block`, `${row.var}_thread`]
  const [co, ci] = [`${column.var}_block`, `${column.var}_thread`]
  const rest = chain.filter((l) => l !== row && l !== column)
  return [
    { kind: 'split', loop: ref(row), by: ROWS, into: [ro, ri] },
    { kind: 'split', loop: ref(column), by: COLUMNS, into: [co, ci] },
    {
      kind: 'reorder',
      loops: [named(row, ro), named(column, co), named(row, ri), named(column, ci), ...rest.map(ref)],
    },
    {
      kind: 'bind',
      bindings: [
        { loop: named(row, ro), to: 'block.x' },
        { loop: named(column, co), to: 'block.y' },
        { loop: named(row, ri), to: 'thread.y' },
        { loop: named(column, ci), to: 'thread.x' },
      ],
    },
  ]
}
