/**
 * Packing of buffers into arenas, for devices with few bindings per launch. Stage III → Stage III. Invariant reached: no launch uses more
 * than `limit` buffers, as far as packing of read-only arrays permits. Read-only arrays of one element type are concatenated into an
 * arena, and a parameter of the plan holds the base offset of each array. Launches that write too many buffers are split first.
 */
import type { Param } from '../../ir/coordinates/stage1.ts'
import { type Names, namesOf, unusedName } from '../../ir/expressions/bound-names.ts'
import { add, ceildiv, type Expr, int, load, mul, variable } from '../../ir/expressions/expr.ts'
import { buffersRead, freeVars } from '../../ir/expressions/expr-tree.ts'
import { groupBy } from '../../ir/memoize.ts'
import { readsOf, targetsOf, writesOf } from '../../ir/statements/accesses.ts'
import type { Buffer, Fact, Kernel3, Launch, PlanStep, Stmt } from '../../ir/statements/loops.ts'
import { type Body, bodiesOf, exprsOf, mapBodies, rewriteStmts, someStmt } from '../../ir/statements/tree.ts'

/** An array stored inside an arena. */
interface Member {
  readonly buffer: Buffer
  /** Name of the parameter that holds the index of the array's first element in the arena. */
  readonly base: string
  /** Value of this parameter in elements, over the other parameters of the plan. */
  readonly offset: Expr
}

/** A buffer of the packed plan that contains several buffers of the original plan. */
export interface Arena {
  readonly buffer: Buffer
  readonly members: readonly Member[]
}

export interface PackedPlan {
  readonly plan: Kernel3
  readonly arenas: readonly Arena[]
}

/** The global buffers of the plan that a launch reads or writes. */
export function buffersOf(plan: Kernel3, launch: Launch): readonly Buffer[] {
  const used = new Set([...readsOf(launch.body), ...writesOf(launch.body)])
  return plan.buffers.filter((b) => used.has(b.name))
}

/**
 * Packs as few arrays as necessary for every launch to use at most `limit` buffers, index arrays first. Launches that still exceed the
 * limit are left for the caller to reject. A plan within the limit is returned unchanged.
 */
export function packBuffers(whole: Kernel3, limit: number): PackedPlan {
  const plan = withSlices(whole, limit)
  const launches = plan.steps.filter((s) => s.kind === 'launch').map((s) => buffersOf(plan, s))
  if (launches.every((l) => l.length <= limit)) return { plan, arenas: [] }
  const chosen = choose(launches, limit)
  const bodies = plan.steps.flatMap((s) => (s.kind === 'launch' ? s.body : []))
  const names = namesOf({ params: plan.params, buffers: plan.buffers, body: bodies })
  const arenas = byDtype(plan.buffers.filter((b) => chosen.has(b)))
    .filter((members) => members.length > 1)
    .map((members) => arenaOf(members, names))
  return { plan: withArenas(plan, arenas), arenas }
}

/** Splits the launches that would exceed the limit even after packing. */
function withSlices(plan: Kernel3, limit: number): Kernel3 {
  const fits = (launch: Launch): boolean => {
    const used = buffersOf(plan, launch)
    const readOnly = used.filter((b) => RANK[b.role] !== undefined)
    return used.length - readOnly.length + byDtype(readOnly).length <= limit
  }
  if (plan.steps.every((s) => s.kind !== 'launch' || fits(s))) return plan
  const usedNames = new Set(plan.steps.flatMap((s) => (s.kind === 'launch' ? [s.name] : [])))
  const nameOf = (base: string): string => {
    const name = unusedName(base, (x) => usedNames.has(x))
    usedNames.add(name)
    return name
  }
  return {
    ...plan,
    steps: plan.steps.flatMap((s): readonly PlanStep[] =>
      s.kind === 'launch' ? slicesOf(plan, s, fits, nameOf) : [s],
    ),
  }
}

/** Packing order of read-only buffers by role: index arrays first. Other roles are not packed. */
const RANK: Readonly<Partial<Record<Buffer['role'], number>>> = { index: 0, in: 1 }

/** Selects the arrays to pack. A launch benefits from arrays that were selected for an earlier launch. */
function choose(launches: readonly (readonly Buffer[])[], limit: number): ReadonlySet<Buffer> {
  const chosen = new Set<Buffer>()
  for (const used of launches) {
    const slots = (): number => {
      const packed = used.filter((b) => chosen.has(b))
      return used.length - packed.length + new Set(packed.map((b) => b.dtype)).size
    }
    const readOnly = used.filter((b) => RANK[b.role] !== undefined)
    const groups = byDtype(readOnly.toSorted((a, b) => RANK[a.role]! - RANK[b.role]!))
    groups.sort((a, b) => RANK[a[0]!.role]! - RANK[b[0]!.role]! || b.length - a.length)
    for (const b of groups.flat()) {
      if (slots() <= limit) break
      chosen.add(b)
    }
  }
  return chosen
}

const byDtype = (buffers: readonly Buffer[]): Buffer[][] => [...groupBy(buffers, (b) => b.dtype).values()]

function arenaOf(members: readonly Buffer[], names: Names): Arena {
  const first = members[0]!
  let offset: Expr = int(0)
  const placed = members.map((buffer): Member => {
    const member = { buffer, base: names.fresh(`base_${buffer.name}`), offset }
    // Arrays begin at multiples of the vector width, so that vector loads stay aligned.
    offset = mul(ceildiv(add(offset, buffer.shape[0]!), int(ALIGN)), int(ALIGN))
    return member
  })
  const index = members.every((b) => b.role === 'index')
  const buffer: Buffer = {
    name: names.fresh(`arena_${first.dtype}`),
    dtype: first.dtype,
    scope: 'global',
    role: index ? 'index' : 'in',
    shape: [offset],
    fill: 0,
    accumulate: first.dtype,
  }
  return { buffer, members: placed }
}

/** Vector width in elements on devices with few bindings. */
const ALIGN = 4

function withArenas(plan: Kernel3, arenas: readonly Arena[]): Kernel3 {
  const home = new Map(arenas.flatMap((a) => a.members.map((m) => [m.buffer.name, { ...m, arena: a }])))
  const body = (b: Body): Body =>
    rewriteStmts(b, {
      expr: (e) => {
        const at = e.kind === 'load' ? home.get(e.buffer) : undefined
        if (e.kind !== 'load' || !at) return undefined
        return load(at.arena.buffer.name, [add(variable(at.base), e.index[0]!)], e.dtype, e.span)
      },
    })
  const bases = arenas.flatMap((a) =>
    a.members.map((m): Param => ({ name: m.base, kind: 'size', dtype: 'i32', measured: true })),
  )
  return {
    ...plan,
    params: [...plan.params, ...bases],
    facts: [
      ...(plan.facts ?? []),
      ...bases.map((b): Fact => ({ size: b.name, relation: 'multiple', by: ALIGN })),
    ],
    buffers: [...plan.buffers.filter((b) => !home.has(b.name)), ...arenas.map((a) => a.buffer)],
    steps: plan.steps.map((s) => (s.kind === 'launch' ? { ...s, body: body(s.body) } : s)),
  }
}

// Launch fission by program slicing, for devices with few bindings per launch. Stage III → Stage III. A
// launch with too many buffers becomes several launches on the same grid. Each contains the slice for some of
// the written buffers. Written buffers that depend on each other stay in one launch.

/**
 * Returns the slices of a launch, each within the limit if dependences allow; only the launch itself if it cannot or need not be split.
 */
function slicesOf(
  plan: Kernel3,
  launch: Launch,
  fits: (slice: Launch) => boolean,
  nameOf: (base: string) => string,
): readonly Launch[] {
  // Launches with instruction calls are not split.
  if (fits(launch) || someStmt(launch.body, (s) => s.kind === 'instr')) return [launch]
  const groups = dependentGroups(plan, launch)
  const bins: ReadonlySet<string>[] = []
  for (const group of groups) {
    const at = bins.findIndex((bin) => fits(sliceFor(launch, new Set([...bin, ...group]))))
    if (at < 0) bins.push(group)
    else bins[at] = new Set([...bins[at]!, ...group])
  }
  if (bins.length < 2) return [launch]
  return bins.map((bin, k) => ({
    ...sliceFor(launch, bin),
    name: k === 0 ? launch.name : nameOf(launch.name),
  }))
}

/** Partitions the written buffers of a launch into groups that depend on each other or are written together. */
function dependentGroups(plan: Kernel3, launch: Launch): readonly ReadonlySet<string>[] {
  const planBuffers = new Set(plan.buffers.map((b) => b.name))
  const written = [...writesOf(launch.body)].filter((b) => planBuffers.has(b))
  const groupOf = new Map(written.map((b) => [b, new Set([b])]))
  const join = (a: string, b: string): void => {
    const [x, y] = [groupOf.get(a)!, groupOf.get(b)!]
    if (x === y) return
    for (const name of y) groupOf.set(name, x.add(name))
  }
  for (const b of written) {
    const slice = sliceFor(launch, new Set([b]))
    for (const used of [...readsOf(slice.body), ...writesOf(slice.body)]) if (groupOf.has(used)) join(b, used)
  }
  return [...new Set(groupOf.values())]
}

/** Returns the backward slice of the launch for these written buffers; barriers are kept. */
function sliceFor(launch: Launch, kept: ReadonlySet<string>): Launch {
  const needed = new Set(kept)
  const isKept = (s: Stmt): boolean => {
    switch (s.kind) {
      case 'barrier':
        return true
      case 'let':
        return needed.has(s.name)
      case 'alloc':
        return needed.has(s.buffer.name)
      case 'vector_load':
        return s.names.some((name) => needed.has(name))
      default:
        return targetsOf(s).some((t) => needed.has(t.buffer)) || bodiesOf(s).some((b) => b.some(isKept))
    }
  }
  const mark = (body: Body): void => {
    for (const s of body) {
      if (!isKept(s)) continue
      for (const e of exprsOf(s)) for (const name of [...freeVars(e), ...buffersRead(e)]) needed.add(name)
      for (const t of targetsOf(s)) needed.add(t.buffer)
      for (const b of bodiesOf(s)) mark(b)
    }
  }
  for (let before = -1; before < needed.size; ) {
    before = needed.size
    mark(launch.body)
  }
  const slice = (body: Body): Body => body.flatMap((s): Body => (isKept(s) ? [mapBodies(s, slice)] : []))
  return { ...launch, body: slice(launch.body) }
}
