/**
 * Invariant reached: no reduction carries its initialisation; every target is set to the identity once, before
 * the first combine.
 *
 * The identity goes just before the outermost reduction loop, under copies of the spatial loops that lie
 * between it and the reduction. Where that place cannot hold it (the target's element changes with a reduction
 * loop, or the loop runs on several blocks or threads at once) the whole buffer is filled first instead.
 */
import { invariant } from '../ast/diagnostic.ts'
import { constant, type Expr, freeVars, type Load, mentions, substitute, variable } from '../ir/expr.ts'
import type { Buffer, For, Kernel2, Reduce, Stmt } from '../ir/loops.ts'
import { initsOf } from '../ir/reductions.ts'
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
    const { reduce, path } = found
    const plain = stmt<Reduce>({ ...reduce, init: false })
    const at = path.findIndex((l) => l.reduce)
    if (at < 0) {
      body = replaceStmt(body, reduce, () => [...identities(reduce), plain])
      continue
    }
    const outermost = path[at]!
    const inside = path.slice(at)
    if (fitsBefore(reduce, inside)) {
      const nest = initNest(reduce, inside, names)
      body = replaceStmt(body, reduce, () => plain)
      body = replaceLoop(body, outermost.var, (loop) => [...nest, loop])
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

function initNest(reduce: Reduce, inside: readonly For[], names: Names): Stmt[] {
  const reductionVars = new Set(inside.filter((l) => l.reduce).map((l) => l.var))
  const loops = inside.filter((l) => !l.reduce && usedBy(reduce, l))
  const rename = new Map<string, Expr>(loops.map((l) => [l.var, variable(names.fresh(l.var))]))
  const kept = (g: Expr): boolean => [...freeVars(g)].every((v) => !reductionVars.has(v))
  // A guard may sit on a loop that is not copied; what it says of the copied loops still has to hold.
  const guards = inside.flatMap((l) => l.guards).filter(kept)
  let body: readonly Stmt[] = identities(reduce, rename)
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
