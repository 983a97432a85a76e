/**
 * Kernel outlining: top-level loop nests become launches with grids and thread indices (or clears). Invariant reached: bound loops are
 * hardware indices, and guards are `if` statements. Only the thread that owns an element writes it to shared or global memory.
 */
import { isWarpCollective, lanesIn, threadsIn } from '../../analysis/instructions/lane-groups.ts'
import { failAt, InternalError, invariant } from '../../ast/diagnostics/diagnostic.ts'
import { kernelIdentifier } from '../../ir/coordinates/derived-names.ts'
import type { Names } from '../../ir/expressions/bound-names.ts'
import type { Expr, ThreadAxis } from '../../ir/expressions/expr.ts'
import { add, all, builtin, eq, int, lt, max, mul, THREAD_AXES, variable } from '../../ir/expressions/expr.ts'
import { truncateDivisions } from '../../ir/expressions/expr-tree.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { levelOf } from '../../ir/instructions/hardware-axes.ts'
import { accessesOf, offsetsIn } from '../../ir/statements/accesses.ts'
import { allocatedNames, substituteStmts } from '../../ir/statements/bindings.ts'
import { allocations } from '../../ir/statements/definitions.ts'
import type { Buffer, Fill, For, Kernel2, Launch, PlanStep, Stmt } from '../../ir/statements/loops.ts'
import { forLoop, store } from '../../ir/statements/statement-builders.ts'
import { type Body, hasBarrier, someStmt, stmt, walkStmts } from '../../ir/statements/tree.ts'
import { insertBarriers } from '../divergence/barriers.ts'
import { varyingIn } from '../divergence/divergence-analysis.ts'
import { conditionsUnder, isCooperative } from '../divergence/divergent-conditions.ts'
import { clusterOf } from '../pipelining/cluster-multicast.ts'

/**
 * Outlines every top-level statement. `warp`: number of lanes that can synchronise without their block; 1 if the target has no such
 * barrier.
 */
export function outlineLaunches(kernel: Kernel2, names: Names, warp = 1): PlanStep[] {
  const steps: PlanStep[] = []
  const parallel = isParallel(kernel.body)
  const indptr = offsetsIn(kernel.buffers)
  for (const s of kernel.body) {
    const name = `${kernelIdentifier(kernel.name)}_${steps.length}`
    if (s.kind === 'rounds') steps.push(s)
    else if (s.kind === 'fill') {
      if (isZero(s.value)) steps.push({ kind: 'clear', buffer: s.buffer })
      else steps.push(launchOf([fillNest(s, kernel, names, parallel)], name, indptr, warp, names))
    } else steps.push(launchOf([s], name, indptr, warp, names))
  }
  return steps
}

const isZero = (e: Expr): boolean => e.kind === 'const' && Object.is(e.value, 0)

function fillNest(s: Fill, kernel: Kernel2, names: Names, parallel: boolean): Stmt {
  const buffer = kernel.buffers.find((b) => b.name === s.buffer)
  invariant(buffer, `no buffer ${s.buffer}`)
  return flatNest(buffer, 'fill', names, parallel, (p) => store(s.buffer, [p], s.value))
}

type Extents = ReadonlyMap<ThreadAxis, Expr>

function launchOf(nest: Body, name: string, indptr: ReadonlySet<string>, warp: number, names: Names): Launch {
  const body = insertBarriers(nest, indptr, warp, names)
  const extents = collectExtents(body)
  const extent = (axis: ThreadAxis): Expr => extents.get(axis) ?? int(1)
  const threads = (axis: ThreadAxis): number => {
    const e = extent(axis)
    if (e.kind !== 'const') throw new InternalError(`the extent of ${axis} is not constant`)
    return e.value
  }
  return {
    kind: 'launch',
    name,
    grid: [
      truncateDivisions(extent('block.x')),
      truncateDivisions(extent('block.y')),
      truncateDivisions(extent('block.z')),
    ],
    block: [threads('thread.x'), threads('thread.y'), threads('thread.z')],
    ...inClusters(body),
    body: binder(extents, body, conditionsUnder(varyingIn(body, threadsIn(body)), names)),
  }
}

/**
 * Returns the cluster size of the launch; an empty object if it has no clusters. Throws `schedule/idle-cluster` if clusters share no
 * copies.
 */
function inClusters(body: Body): Pick<Launch, 'cluster'> {
  const clustered = clusterOf(body)
  if (!clustered) return {}
  const { loop, blocks } = clustered
  const isTogether = ({ mode }: For): boolean =>
    mode.kind === 'instr' && mode.signals?.multicast !== undefined
  if (someStmt(body, (s) => s.kind === 'for' && isTogether(s))) return { cluster: blocks }
  return failAt('schedule/idle-cluster', loop.span, {
    message: `blocks of ${loop.name} run in clusters of ${blocks}, and copy nothing together`,
    expected:
      'a pipelined copy by an instruction with a text for multicast, the same in every block of a cluster',
    hint: 'leave out `cluster`',
  })
}

/** The largest extent that is bound to each axis. */
function collectExtents(body: Body): Extents {
  const out = new Map<ThreadAxis, Expr>()
  walkStmts(body, (s) => {
    if (s.kind !== 'for' || s.mode.kind !== 'bind') return
    const extent = out.get(s.mode.to)
    out.set(s.mode.to, extent && !sameExpr(extent, s.extent) ? max(extent, s.extent) : s.extent)
  })
  const { count } = lanesIn(body)
  const onLanes = out.get('thread.x')
  if (count > 1) out.set('thread.x', onLanes ? max(onLanes, int(count)) : int(count))
  // A block has at least one thread; loops with extent 0 are skipped by their extents.
  for (const [axis, e] of out)
    if (levelOf(axis) === 'thread' && e.kind === 'const' && e.value < 1) out.set(axis, int(1))
  return out
}

function binder(extents: Extents, body: Body, conditions: ReturnType<typeof conditionsUnder>) {
  const lanes = lanesIn(body)
  const localBuffers = allocations(body)
  const list = (body: Body, on: ReadonlySet<ThreadAxis>): Body => body.flatMap((s) => statement(s, on))
  const statement = (s: Stmt, on: ReadonlySet<ThreadAxis>): Body => {
    const owners = ownersOf(s, on)
    if (owners.length > 0)
      return conditions.onOwners(
        all(owners.map((a) => eq(builtin(a), int(0)))),
        statement(s, new Set([...on, ...owners])),
      )
    switch (s.kind) {
      case 'for':
        return loop(s, on)
      case 'if': {
        if (s.cond.kind === 'const') return list(s.cond.value !== 0 ? s.then : s.else, on)
        const then = list(s.then, on)
        const otherwise = list(s.else, on)
        return conditions.choose(s.cond, then, otherwise)
      }
      default:
        return [s]
    }
  }
  const loop = (loop: For, on: ReadonlySet<ThreadAxis>): Body => {
    if (loop.mode.kind !== 'bind') {
      const body = list(loop.body, loop.cooperative ? new Set(THREAD_AXES) : on)
      const rounds = conditions.agreedOn(loop.extent, body)
      return [
        ...rounds.before,
        stmt({
          ...loop,
          extent: rounds.value,
          guards: [],
          body: conditions.guard(loop.guards, conditions.inRounds(loop, body)),
        }),
      ]
    }
    const axis = loop.mode.to
    const whole = extents.get(axis)!
    // An axis of one thread has index 0, so its conditions are uniform.
    const index = levelOf(axis) === 'thread' && sameExpr(whole, int(1)) ? int(0) : builtin(axis)
    const map = new Map<string, Expr>([[loop.var, index]])
    // Bounds on the loop variable become bounds on the hardware index.
    const inner = substituteStmts(loop.body, map)
    const guards = (substituteStmts([{ ...loop, body: [] }], map)[0] as For).guards
    const range = sameExpr(whole, loop.extent) ? [] : [lt(index, loop.extent)]
    return conditions.guard([...range, ...guards], list(inner, new Set([...on, axis])))
  }
  /**
   * The axes of the launch to which no loop in or around `s` is bound, if `s` writes shared or global memory. One index of each such axis
   * executes `s`.
   */
  const ownersOf = (s: Stmt, on: ReadonlySet<ThreadAxis>): ThreadAxis[] => {
    if (s.kind === 'alloc' || s.kind === 'let' || s.kind === 'barrier') return []
    const inside = new Set<ThreadAxis>()
    walkStmts([s], (x) => {
      if (x.kind === 'for' && x.mode.kind === 'bind') inside.add(x.mode.to)
    })
    if (isWarpCollective(s, lanes)) inside.add('thread.x')
    const idle = THREAD_AXES.filter((a) => extents.has(a) && !on.has(a) && !inside.has(a))
    if (idle.length === 0 || hasBarrier([s]) || isCooperative(s)) return []
    const local = allocatedNames([s])
    const written = accessesOf([s]).filter((a) => a.mode === 'write' && !local.has(a.buffer))
    const scopeOf = (b: string): Buffer['scope'] => localBuffers.get(b)?.scope ?? 'global'
    // Registers are private, so all threads must run statements that write them.
    if (written.some((a) => scopeOf(a.buffer) === 'register')) return []
    const global = written.some((a) => scopeOf(a.buffer) === 'global')
    const shared = written.some((a) => scopeOf(a.buffer) === 'shared')
    return idle.filter((a) => (levelOf(a) === 'thread' ? global || shared : global && !shared))
  }
  return list(body, new Set())
}

// A loop nest over all elements of a buffer by flat address, for fills and whole-buffer copies.

const THREADS = 256

/** Returns true if a loop is bound to a hardware axis; new nests are then bound too. */
export const isParallel = (body: readonly Stmt[]): boolean =>
  someStmt(body, (s) => s.kind === 'for' && s.mode.kind === 'bind')

/** Returns a loop that runs `each(p)` for every flat address p of the buffer. */
export function flatNest(
  buffer: Buffer,
  nest: string,
  names: Names,
  parallel: boolean,
  each: (p: Expr) => Stmt,
): For {
  const total = buffer.shape.reduce(mul, int(1))
  const p = names.fresh('p')
  if (!parallel) return forLoop(p, total, [each(variable(p))], { name: nest, nest })
  const block = names.fresh('p_block')
  const at = add(mul(variable(block), int(THREADS)), variable(p))
  const inner = forLoop(p, int(THREADS), [each(at)], {
    name: nest,
    nest,
    guards: [lt(at, total)],
    mode: { kind: 'bind', to: 'thread.x' },
  })
  const blocks: Expr = {
    kind: 'binary',
    op: 'div',
    a: add(total, int(THREADS - 1)),
    b: int(THREADS),
    dtype: 'i32',
  }
  return forLoop(block, blocks, [inner], { name: nest, nest, mode: { kind: 'bind', to: 'block.x' } })
}
