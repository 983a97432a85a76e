/**
 * Invariant reached: no reduction loop is bound to threads, except around atomic updates of memory.
 *
 * Each thread reduces its share into registers. The shares of lanes that can exchange registers meet there first
 * (`Lanes`); those of other threads meet in shared memory, where the upper half of the threads is folded onto the lower
 * half until one is left (Harris, "Optimizing parallel reduction in CUDA") or until lanes can exchange again. One thread
 * updates the target. Barriers come with `barriers.ts`.
 */
import { fail } from '../ast/diagnostic.ts'
import { alloc, local, store, when, whenAll } from '../ir/build.ts'
import {
  add,
  and,
  bool,
  constant,
  div,
  type Expr,
  eq,
  freeVars,
  int,
  type Load,
  load,
  lt,
  mentions,
  mod,
  mul,
  substitute,
  variable,
} from '../ir/expr.ts'
import type { Buffer, For, Kernel2, Reduce, Stmt } from '../ir/loops.ts'
import { reductionsOf } from '../ir/reductions.ts'
import {
  type Body,
  bodiesOf,
  mapSame,
  replaceLoop,
  replaceStmt,
  stmt,
  walkStmts,
  withBodies,
} from '../ir/tree.ts'
import { laneWidth, onX } from './lanes.ts'
import { outsideLifetime } from './lifetime.ts'
import type { Names } from './names.ts'
import { namesOf } from './names-of.ts'

/** What of a target decides how threads reduce together: see `LowerOptions`. */
interface Exchange {
  readonly lanes?: number | undefined
  readonly together?: boolean | undefined
}

export function reduceAcrossThreads(kernel: Kernel2, exchange: Exchange = {}): Kernel2 {
  const names = namesOf(kernel)
  const shares = new Set<string>()
  let body: Body = kernel.body
  for (;;) {
    const found = latest(body, shares)
    if (!found) break
    body = rewrite(body, found.reduce, found.path, {
      names,
      done: shares,
      exchange,
    })
  }
  if (shares.size === 0) return kernel
  return { ...kernel, body: body.map((s) => settled(s, shares)) }
}

/** Bytes of shared memory that the shares of a reduction may take to meet all at once; the largest element. */
const AT_ONCE = 16 * 1024
const SHARE_BYTES = 8

const constantExtent = (l: For): number => (l.extent.kind === 'const' ? l.extent.value : 1)

const onThreads = (l: For): boolean => l.mode.kind === 'bind' && l.mode.to.startsWith('thread')
const onBlocks = (l: For): boolean => l.mode.kind === 'bind' && l.mode.to.startsWith('block')

/**
 * The last reduction over threads that is not into shares yet. What is completed after a loop comes before what
 * an earlier turn put there, so going backwards keeps the order, and the first keeps its initialisation first.
 */
function latest(
  body: Body,
  shares: ReadonlySet<string>,
): { reduce: Reduce; path: readonly For[] } | undefined {
  let out: { reduce: Reduce; path: readonly For[] } | undefined
  walkStmts(body, (s, path) => {
    if (s.kind !== 'reduce' || s.targets.some((t) => shares.has(t.buffer))) return
    const inside = path.slice(outsideLifetime(s, path))
    if (!inside.some((l) => l.reduce && onThreads(l))) return
    if (!(s.atomic && scatters(s, inside))) out = { reduce: s, path }
  })
  return out
}

const elementChanges = (reduce: Reduce, l: For): boolean =>
  reduce.targets.some((t) => t.index.some((e) => mentions(e, l.var)))

/** Which element is updated changes with a reduction loop: every update is atomic, and there are no shares. */
const scatters = (reduce: Reduce, path: readonly For[]): boolean =>
  path.some((l) => l.reduce && !onBlocks(l) && elementChanges(reduce, l))

interface Context {
  readonly names: Names
  /** Buffers that the shares are in. */
  readonly done: Set<string>
  readonly exchange: Exchange
}

function rewrite(body: Body, reduce: Reduce, path: readonly For[], context: Context): Body {
  const { names, done } = context
  const { lanes = 1, together } = context.exchange
  // A reduction loop on blocks stays outside: its blocks meet through the atomic update at the end.
  const outside = outsideLifetime(reduce, path)
  const first = path.findIndex((l, k) => k >= outside && l.reduce && !onBlocks(l))
  const root = path[first]!
  const inside = path.slice(first)
  const depends = (l: For): boolean => elementChanges(reduce, l)
  // Neighbours in thread.x are neighbours in rank.
  const folded = inside
    .filter((l) => l.reduce && onThreads(l))
    .sort((a, b) => Number(onX(a)) - Number(onX(b)))
  const hidden = new Set(inside.map((l) => l.var))
  for (const l of inside) if (!l.reduce && depends(l)) hidden.delete(l.var)
  // Conditions on reduction loops decide what is combined, not where; the others decide what is updated at the end.
  const spatial = inside.filter((l) => !l.reduce && depends(l))
  const conditions = spatial
    .flatMap((l) => l.guards)
    .filter((g) => ![...freeVars(g)].some((v) => hidden.has(v)))
  const kept = spatial.map((l): For => ({ ...l, guards: [] }))
  const serial = kept.filter((l) => !onThreads(l))
  const others = [...path.slice(0, first).filter(onThreads), ...kept.filter(onThreads)]
  for (const l of inside)
    if (l.reduce && depends(l)) refuse(l, `the element that is reduced into changes with ${l.name}`)
  for (const l of serial)
    if (l.extent.kind !== 'const')
      refuse(
        l,
        `loop ${l.name} inside the reduction has no constant extent, so a thread cannot keep its share in registers`,
      )

  const extent = (l: For): Expr => l.extent
  const room = (scope: Buffer['scope'], shape: readonly Expr[], k: number): Buffer => {
    const { buffer, dtype } = reduce.targets[k]!
    return local(names.fresh(`${buffer}_${scope === 'shared' ? 'shares' : 'share'}`), dtype, shape, scope)
  }
  const shares = reduce.targets.map((_, k) => room('register', serial.map(extent), k))
  const total = folded.reduce((n, l) => n * (l.extent.kind === 'const' ? l.extent.value : 1), 1)
  const width = laneWidth(body, reduce, folded.at(-1), lanes)
  // Groups of lanes that are left over, and whether they are few enough to be combined by lanes again.
  const groups = total / width
  const again = groups > 1 && laneWidth(body, reduce, folded.at(-1), groups) === groups && groups <= width
  // All elements of a thread's share meet at once where that is little memory, else one after the other.
  const count = [...serial, ...others].reduce((n, l) => n * constantExtent(l), groups)
  const atOnce = count * SHARE_BYTES * reduce.targets.length <= AT_ONCE
  const rows = atOnce ? serial.map(extent) : []
  const meeting =
    groups > 1
      ? reduce.targets.map((_, k) => room('shared', [...rows, ...others.map(extent), int(groups)], k))
      : []
  const shareIndex = (map: ReadonlyMap<string, Expr>): Expr[] =>
    serial.length > 0 ? serial.map((l) => substitute(variable(l.var), map)) : [int(0)]
  const none: ReadonlyMap<string, Expr> = new Map()
  const identity = (k: number): Expr => {
    const e = reduce.reducer.identity[k]!
    return e.kind === 'const' ? constant(e.value, reduce.targets[k]!.dtype) : e
  }

  // 1. Each thread's share starts at the identity and takes the place of the target.
  const start = nest(serial, names, (map) =>
    shares.map((b, k) =>
      stmt<Stmt>({ kind: 'store', buffer: b.name, index: shareIndex(map), value: identity(k) }),
    ),
  )
  const own: Reduce = stmt({
    ...reduce,
    init: false,
    atomic: false,
    targets: shares.map((b) => load(b.name, shareIndex(none), b.dtype)),
  })

  // 2. The shares meet; each phase is a nest of its own over all threads, so that barriers fall between them. The last
  // one is over those that update different elements: the first thread of each group does it.
  const phase = (
    map: ReadonlyMap<string, Expr>,
    over: readonly For[],
    make: (rank: Expr, cell: (rank: Expr) => Expr[], inner: ReadonlyMap<string, Expr>) => Body,
  ): Stmt[] =>
    nest(
      [...kept.filter(onThreads), ...over.map((l) => ({ ...l, reduce: false, guards: [] }))],
      names,
      (inner) => {
        const all = new Map([...map, ...inner])
        const at = (l: For): Expr => substitute(variable(l.var), all)
        const rank = over.reduce<Expr>((sum, l) => add(mul(sum, l.extent), at(l)), int(0))
        const row = atOnce ? serial.map(at) : []
        return make(rank, (r) => [...row, ...others.map(at), r], all)
      },
    )
  const alone = reduce.init && !reduce.atomic && path.slice(0, first).every((l) => !l.reduce)
  const share = (map: ReadonlyMap<string, Expr>): Load[] =>
    shares.map((b) => load(b.name, shareIndex(map), b.dtype))
  const exchange = (map: ReadonlyMap<string, Expr>, among: number): Stmt => {
    const own = share(map)
    const group = { width: among, among: lanes, ...(together ? { together } : {}) }
    return stmt({ ...reduce, init: false, atomic: false, targets: own, values: own, lanes: group })
  }
  type Phase = (map: ReadonlyMap<string, Expr>) => Stmt[]
  const phases: Phase[] = width > 1 ? [(map) => [exchange(map, width)]] : []
  if (groups > 1)
    phases.push((map) =>
      phase(map, folded, (rank, cell, all) => {
        const stores = meeting.map((b, k) => store(b.name, cell(div(rank, int(width))), share(all)[k]!))
        const first = eq(mod(rank, int(width)), int(0))
        return width > 1 ? [when(first, stores)] : stores
      }),
    )
  if (again)
    phases.push((map) => [
      ...phase(map, folded, (rank, cell, all) =>
        share(all).map((own, k) => {
          const value = load(meeting[k]!.name, cell(mod(rank, int(groups))), own.dtype)
          return store(own.buffer, own.index, value)
        }),
      ),
      exchange(map, groups),
    ])
  for (let half = again ? 0 : 2 ** Math.ceil(Math.log2(groups)) / 2; half >= 1; half /= 2)
    phases.push((map) =>
      phase(map, folded, (rank, cell) => {
        const other = add(rank, int(half))
        const fold: Stmt = stmt({
          ...reduce,
          init: false,
          atomic: false,
          targets: meeting.map((b) => load(b.name, cell(rank), b.dtype)),
          values: meeting.map((b) => load(b.name, cell(other), b.dtype)),
        })
        return [when(and(lt(rank, int(half)), lt(other, int(groups))), [fold])]
      }),
    )
  phases.push((map) =>
    phase(map, [], (_, cell, all) => {
      const result =
        groups > 1 && !again ? meeting.map((b) => load(b.name, cell(int(0)), b.dtype)) : share(all)
      const targets = reduce.targets.map((t) =>
        load(
          t.buffer,
          t.index.map((e) => substitute(e, all)),
          t.dtype,
        ),
      )
      // Where nothing else is combined, what a target starts with changes nothing.
      const then = alone
        ? targets.map((t, k) =>
            stmt<Stmt>({
              kind: 'store',
              buffer: t.buffer,
              index: t.index,
              value: result[k]!,
              span: reduce.span,
            }),
          )
        : [stmt<Stmt>({ ...reduce, targets, values: result })]
      return whenAll(
        conditions.map((g) => substitute(g, all)),
        then,
      )
    }),
  )
  const finish = [
    ...meeting.map(alloc),
    ...(atOnce
      ? phases.flatMap((p) => nest(serial, names, p))
      : nest(serial, names, (map) => phases.flatMap((p) => p(map)))),
  ]
  const before = [...shares.map(alloc), ...start]
  for (const b of [...shares, ...meeting]) done.add(b.name)
  const replaced = replaceStmt(body, reduce, () => own)
  return replaceLoop(replaced, root.var, (loop) => {
    const whole = [...before, loop, ...finish]
    // At the top, what belongs together stays in one statement, and so in one launch.
    return first === 0 ? [stmt({ kind: 'if', cond: bool(true), then: whole, else: [] })] : whole
  })
}

/** The loops on threads no longer reduce into anything that others see. */
function settled(s: Stmt, shares: ReadonlySet<string>): Stmt {
  const visit = (x: Stmt): Stmt => {
    const rebuilt = withBodies(
      x,
      bodiesOf(x).map((b) => mapSame(b, visit)),
    )
    if (rebuilt.kind !== 'for' || !rebuilt.reduce || !onThreads(rebuilt)) return rebuilt
    const own = reductionsOf(rebuilt.body).every((r) => r.reduce.targets.every((t) => shares.has(t.buffer)))
    return own ? stmt({ ...rebuilt, reduce: false }) : rebuilt
  }
  return visit(s)
}

/** Copies of loops around what `make` gives for the copies' variables. */
function nest(
  loops: readonly For[],
  names: Names,
  make: (map: ReadonlyMap<string, Expr>) => readonly Stmt[],
): Stmt[] {
  const map = new Map<string, Expr>()
  const copies = loops.map((l): For => {
    const name = names.fresh(l.var)
    map.set(l.var, variable(name))
    return {
      ...l,
      var: name,
      extent: substitute(l.extent, map),
      guards: l.guards.filter((g) => mentions(g, l.var)).map((g) => substitute(g, map)),
    }
  })
  return [...copies.reduceRight<readonly Stmt[]>((body, l) => [stmt({ ...l, body })], make(map))]
}

function refuse(loop: For, why: string): never {
  fail({
    code: 'schedule/cross-thread',
    message: `a reduction over threads cannot be completed: ${why}`,
    ...(loop.span ? { span: loop.span } : {}),
    expected:
      'spatial loops inside a reduction over threads that are constant, or bound to threads themselves',
    hint: `move ${loop.name} outside of the reduction, split it by a constant, or bind it to a thread axis`,
  })
}
