/**
 * The schedule of nests that have none. For devices with threads: rows over blocks, columns over the threads of a
 * block where the nest has both, else its outermost loop over blocks of threads. What iterations would combine goes
 * through partial results, so that results are the same in every run. Right for any kernel, fast for few.
 */
import { rolesIn } from '../analysis/loop-roles.ts'
import { orRefused, SptError } from '../ast/diagnostic.ts'
import { loopsOf } from '../ir/definitions.ts'
import { isInt } from '../ir/dtype.ts'
import { freeVars, someExpr } from '../ir/expr-tree.ts'
import type { For, Kernel2 } from '../ir/loops.ts'
import { reductionsOf } from '../ir/reductions.ts'
import { apply, type ScheduleState } from './state.ts'
import type { LoopStep } from './steps.ts'

/** Threads of a block along one loop; columns and rows of a block along two. */
const THREADS = 64
const COLUMNS = 32
const ROWS = 4
/** Partial results of what a whole loop adds to one element. */
const SHARES = 1024

/**
 * The state with a default for each nest that binds nothing; one whose every schedule is refused stays on one
 * thread. Each nest of `state` is taken apart at most once, and the passes that this makes never: they combine as
 * well, and would make passes without end.
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

/** The state with what nests bring for one thread, of those that no step has changed. */
export function alone(state: ScheduleState): ScheduleState {
  let first = state
  while (first.before) first = first.before
  const made = new Set(first.kernel.body)
  const untouched = state.kernel.body.filter((s): s is For => s.kind === 'for' && made.has(s))
  return untouched.reduce((before, top) => {
    const own = (before.kernel.defaults ?? []).filter((d) => d.alone && d.nest === top.nest)
    for (const { steps } of own) {
      const next = attempt(before, steps as readonly LoopStep[])
      if (next) return next
    }
    return before
  }, state)
}

/**
 * The state with each statement of a nest in a separate nest, where iterations of the nest combine, several at a time
 * cannot go through partial results, and it is legal.
 */
function separated(state: ScheduleState, nest: string): ScheduleState {
  const top = topOf(state, nest)
  const chain = top?.reduce ? chainOf(top) : []
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

/** The outermost loops of nests that bind nothing, by their variables. */
const freeNests = (k: Kernel2): readonly string[] =>
  k.body.flatMap((s) => (s.kind === 'for' && isFree(s) ? [s.var] : []))

const topOf = (state: ScheduleState, name: string): For | undefined =>
  state.kernel.body.find((s): s is For => s.kind === 'for' && s.var === name)

/** The state with the first schedule of a nest that is legal. */
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
  const made = orRefused(() => steps.reduce(apply, state))
  return made instanceof SptError ? undefined : made
}

/**
 * With partial results where the outermost loop's iterations combine, as far as that is legal and leaves less to
 * one thread: a pass that runs through as many loops, all of them combining, does not.
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

/** The first buffer that a nest combines into, and whether it does so atomically anywhere. */
function combinedIn(top: For): { readonly buffer: string | undefined; readonly atomic: boolean } {
  const reductions = reductionsOf([top]).map((r) => r.reduce)
  return { buffer: reductions[0]?.targets[0]?.buffer, atomic: reductions.some((r) => r.atomic) }
}

function combined(state: ScheduleState, top: For): ScheduleState | undefined {
  const { buffer } = combinedIn(top)
  return buffer === undefined ? undefined : attempt(state, [{ kind: 'combine', buffer, nest: top.nest }])
}

/** The loops that stand directly inside of each other. */
function chainOf(top: For): readonly For[] {
  const only = top.body.length === 1 ? top.body[0] : undefined
  return [top, ...(only?.kind === 'for' ? chainOf(only) : [])]
}

/** Schedules of a nest, the best first. */
function candidates(top: For, kernel: Kernel2): readonly (readonly LoopStep[])[] {
  const chain = chainOf(top)
  const params = new Set(kernel.params.map((p) => p.name))
  const spatial = chain.filter((l) => !l.reduce && l.mode.kind === 'serial' && overSizes(l, params))
  const column = spatial.findLast((l) => l !== top)
  const canBind = (l: For): boolean => l.mode.kind === 'serial' && overSizes(l, params)
  const scatter = column ? undefined : scatteredIn(top, chain)
  const own = (kernel.defaults ?? []).filter((d) => d.nest === top.nest && !d.alone)
  return [
    ...own.map((d) => d.steps as readonly LoopStep[]),
    ...(scatter && canBind(top) && canBind(scatter.loop)
      ? [[{ kind: 'atomic', buffer: scatter.buffer } as const, ...tiled(top, scatter.loop, chain)]]
      : []),
    ...(column && canBind(top) ? [tiled(top, column, chain)] : []),
    ...(canBind(top) ? [onThreads(top, [])] : []),
    // A spatial loop inside of what cannot be spread moves to the outside.
    ...spatial
      .filter((l) => l !== top)
      .map((l) => onThreads(l, [{ kind: 'reorder', loops: [l, ...chain.filter((x) => x !== l)].map(ref) }])),
  ]
}

/**
 * The innermost loop that combines integers into elements that change on the way, and into which buffer: atomic updates give the
 * same in every run there.
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

/** Neighbouring threads take neighbouring columns. */
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

const overSizes = (l: For, params: ReadonlySet<string>): boolean =>
  !someExpr(l.extent, (e) => e.kind === 'load' || e.kind === 'search') &&
  [...freeVars(l.extent)].every((v) => params.has(v))
