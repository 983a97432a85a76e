/**
 * Invariant reached: no reduction carries its initialisation; every target is set to the identity once, before
 * the first combine.
 *
 * The identity goes just before the outermost reduction loop, under copies of the spatial loops that lie
 * between it and the reduction. Where that place cannot hold it (the target's element changes with a reduction
 * loop, or the loop runs on several blocks or threads at once) the whole buffer is filled first instead.
 */
import { invariant } from '../ast/diagnostic.ts'
import { when } from '../ir/build.ts'
import { constant, type Expr, freeVars, type Load, mentions, substitute, variable } from '../ir/expr.ts'
import type { Buffer, For, Kernel2, Reduce, Stmt } from '../ir/loops.ts'
import { type FoundReduce, initsOf } from '../ir/reductions.ts'
import { type Body, replaceLoop, replaceStmt, stmt } from '../ir/tree.ts'
import type { Names } from './names.ts'
import { namesOf } from './names-of.ts'

export function placeInit(kernel: Kernel2): Kernel2 {
  const names = namesOf(kernel)
  let body: Body = kernel.body
  const fills: Stmt[] = []
  for (;;) {
    const found = initsOf(body)[0]
    if (!found) break
    const { reduce } = found
    const plain = stmt<Reduce>({ ...reduce, init: false })
    const started = withStart(body, found, names)
    if (started) {
      body = replaceStmt(started, reduce, () => plain)
    } else {
      for (const [k, t] of reduce.targets.entries()) {
        const buffer = kernel.buffers.find((b) => b.name === t.buffer)
        invariant(buffer, `the local buffer ${t.buffer} cannot be initialised before its reduction`)
        fills.push(
          stmt({ kind: 'fill', buffer: buffer.name, value: typed(reduce.reducer.identity[k]!, buffer) }),
        )
      }
      body = replaceStmt(body, reduce, () => plain)
    }
  }
  return { ...kernel, body: [...fills, ...body] }
}

/**
 * The body with the targets of a reduction in it set to the identity before the outermost reduction loop around, where
 * `cond` holds of the element. Nothing where that place cannot hold it.
 */
export function withStart(
  body: Body,
  { reduce, path }: FoundReduce,
  names: Names,
  cond?: Expr,
): Body | undefined {
  const at = path.findIndex((l) => l.reduce)
  const inside = at < 0 ? [] : path.slice(at)
  if (!fitsBefore(reduce, inside)) return undefined
  const nest = initNest(reduce, inside, names, cond)
  return at < 0
    ? replaceStmt(body, reduce, () => [...nest, reduce])
    : replaceLoop(body, path[at]!.var, (loop) => [...nest, loop])
}

/** The element does not change with a reduction loop, and no reduction loop runs in parallel. */
function fitsBefore(reduce: Reduce, inside: readonly For[]): boolean {
  const reductions = inside.filter((l) => l.reduce)
  if (reductions.some((l) => l.mode.kind === 'bind')) return false
  const spatial = inside.filter((l) => !l.reduce)
  return reductions.every(
    (r) =>
      reduce.targets.every((t) => t.index.every((e) => !mentions(e, r.var))) &&
      spatial.every((l) => !mentions(l.extent, r.var) || !usedBy(reduce, l)),
  )
}

const usedBy = (reduce: Reduce, loop: For): boolean =>
  reduce.targets.some((t) => t.index.some((e) => mentions(e, loop.var)))

function initNest(reduce: Reduce, inside: readonly For[], names: Names, cond?: Expr): Stmt[] {
  const reductionVars = new Set(inside.filter((l) => l.reduce).map((l) => l.var))
  const loops = inside.filter((l) => !l.reduce && usedBy(reduce, l))
  const rename = new Map<string, Expr>(loops.map((l) => [l.var, variable(names.fresh(l.var))]))
  const kept = (g: Expr): boolean => [...freeVars(g)].every((v) => !reductionVars.has(v))
  // A guard may sit on a loop that is not copied; what it says of the copied loops still has to hold.
  const guards = inside.flatMap((l) => l.guards).filter(kept)
  const stores = identities(reduce, rename)
  let body: readonly Stmt[] = cond ? [when(substitute(cond, rename), stores)] : stores
  for (let k = loops.length - 1; k >= 0; k--) {
    const l = loops[k]!
    const outer = new Set(loops.slice(k + 1).map((x) => x.var))
    const mine = guards.filter((g) => mentions(g, l.var) && [...freeVars(g)].every((v) => !outer.has(v)))
    const to = rename.get(l.var)!
    invariant(to.kind === 'var', 'loops are renamed to variables')
    body = [
      stmt<For>({
        ...l,
        var: to.name,
        // What an instruction does is not the initialisation.
        mode: l.mode.kind === 'instr' ? { kind: 'serial' } : l.mode,
        extent: substitute(l.extent, rename),
        guards: mine.map((g) => substitute(g, rename)),
        body,
      }),
    ]
  }
  return [...body]
}

const identities = (reduce: Reduce, rename: ReadonlyMap<string, Expr> = new Map()): Stmt[] =>
  reduce.targets.map((t: Load, k) => {
    const identity = reduce.reducer.identity[k]!
    const value = identity.kind === 'const' ? constant(identity.value, t.dtype) : identity
    return stmt({
      kind: 'store',
      buffer: t.buffer,
      index: t.index.map((e) => substitute(e, rename)),
      value,
      span: reduce.span,
    })
  })

const typed = (identity: Expr, buffer: Buffer): Expr =>
  identity.kind === 'const' ? constant(identity.value, buffer.dtype) : identity
