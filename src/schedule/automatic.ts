/**
 * The schedule of nests that have none, for devices with threads: rows over blocks, columns over the threads of a
 * block where the nest has both, else its outermost loop over blocks of threads. What iterations would combine goes
 * through partial results, so that results are the same in every run. Right for any kernel, fast for few.
 */
import { SptError } from '../ast/diagnostic.ts'
import { targetsOf } from '../ir/accesses.ts'
import { freeVars, someExpr } from '../ir/expr-tree.ts'
import type { For, Kernel2 } from '../ir/loops.ts'
import { loopsOf, walkStmts } from '../ir/tree.ts'
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
    const top = topOf(before, nest)
    const now = top ? apart(before, top) : before
    return freeNests(now.kernel)
      .filter((name) => name === nest || !known.has(name))
      .reduce(onBlocks, now)
  }, state)
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
  try {
    return steps.reduce(apply, state)
  } catch (error) {
    if (error instanceof SptError) return undefined
    throw error
  }
}

/**
 * With partial results where the outermost loop's iterations combine, as far as that is legal and leaves less to
 * one thread: a pass that runs through as many loops, all of them combining, does not.
 */
function apart(state: ScheduleState, top: For): ScheduleState {
  if (!top.reduce) return state
  const buffers = new Set<string>()
  let atomic = false
  walkStmts([top], (s) => {
    if (s.kind !== 'reduce') return
    atomic ||= s.atomic
    for (const t of targetsOf(s)) buffers.add(t.buffer)
  })
  const [buffer] = buffers
  if (atomic || buffer === undefined) return state
  const known = new Set(freeNests(state.kernel))
  const combined = attempt(state, [{ kind: 'combine', buffer, nest: top.nest }])
  const passes = combined?.kernel.body.filter((s): s is For => s.kind === 'for' && !known.has(s.var)) ?? []
  const asLong = (pass: For): boolean => {
    const loops = loopsOf([pass])
    return loops.every((l) => l.reduce) && loops.length >= loopsOf([top]).length
  }
  if (combined && !passes.some(asLong)) return combined
  const [outer, inner] = [`${top.var}_part`, `${top.var}_share`]
  return (
    attempt(state, [
      { kind: 'split', loop: ref(top), by: SHARES, into: [outer, inner] },
      { kind: 'rfactor', loop: named(top, inner) },
    ]) ?? state
  )
}

/** Schedules of a nest, the best first. */
function candidates(top: For, kernel: Kernel2): readonly (readonly LoopStep[])[] {
  const chain: For[] = [top]
  for (let l: For | undefined = top; l; ) {
    const [only]: readonly unknown[] = l.body.length === 1 ? l.body : []
    const next = only as For | undefined
    l = next?.kind === 'for' ? next : undefined
    if (l) chain.push(l)
  }
  const params = new Set(kernel.params.map((p) => p.name))
  const spatial = chain.filter((l) => !l.reduce && l.mode.kind === 'serial' && overSizes(l, params))
  const column = spatial.findLast((l) => l !== top)
  const canBind = (l: For): boolean => l.mode.kind === 'serial' && overSizes(l, params)
  return [
    ...(column && canBind(top) ? [tiled(top, column, chain)] : []),
    ...(canBind(top) ? [onThreads(top, [])] : []),
    // A spatial loop inside of what cannot be spread moves to the outside.
    ...spatial
      .filter((l) => l !== top)
      .map((l) => onThreads(l, [{ kind: 'reorder', loops: [l, ...chain.filter((x) => x !== l)].map(ref) }])),
  ]
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
