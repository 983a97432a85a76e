/**
 * Epilogue fusion over formats of several parts, each of which produces rows of its own. The first part visits every
 * row and initialises it; the other parts come later and list their rows. In the first part, the epilogue skips the
 * listed rows. A loop nest over each list remains, which can move into the loop of that part.
 */

import { all, type Expr, int, load, lt, select, variable } from '../../../ir/expressions/expr.ts'
import { mentions } from '../../../ir/expressions/expr-tree.ts'
import { accessesOf } from '../../../ir/statements/accesses.ts'
import { renameBuffer, substituteStmts } from '../../../ir/statements/bindings.ts'
import { replaceLoop } from '../../../ir/statements/definitions.ts'
import type { Buffer, DisjointWrites, For, Kernel2, Reduce, Stmt } from '../../../ir/statements/loops.ts'
import { type Body, replaceStmt, stmt } from '../../../ir/statements/tree.ts'
import type { Outcome } from '../../primitive.ts'
import type { Context } from '../../state/context.ts'
import type { Shared, Writer } from '../nests/merge-disjoint-rows.ts'
import { heldOf, isMissing, listOf, sharedBy } from '../nests/merge-disjoint-rows.ts'
import { commonWords } from '../nests/top-nests.ts'

/** Parts that produce rows of a buffer one after another. */
export interface Parts extends Shared {
  readonly buffer: Buffer
  /** The list of rows of each of the other parts. */
  readonly lists: readonly Buffer[]
}

/** Returns the parts after `producer` that combine into one of the buffers, with rows other than the producer's. */
export function partsAfter(
  cx: Context,
  producer: Stmt,
  after: Body,
  buffers: readonly string[],
): Parts | undefined {
  const [name, more] = buffers.filter((b) => accessesOf(after).some((a) => a.buffer === b))
  if (name === undefined || more !== undefined || producer.kind !== 'for') return undefined
  const tops = after.filter((s) => accessesOf([s]).some((a) => a.buffer === name))
  if (!tops.every((s): s is For => s.kind === 'for')) return undefined
  const buffer = cx.buffer(name)
  const shared = sharedBy(cx.kernel, buffer, [producer, ...tops])
  if (shared?.first.top !== producer) return undefined
  const lists = shared.others.map((o) => listOf(cx.kernel, o, shared.row, buffer))
  return lists.every((l) => l !== undefined) ? { ...shared, buffer, lists } : undefined
}

/** Returns the condition that a row is in no list; searched only for rows without element in the first part. */
export function isFirsts(kernel: Kernel2, { first, lists, row }: Parts): Expr {
  const { path, index } = first.access
  const coordinate = index[row]!
  const loop = path.findLast((l) => mentions(coordinate, l.var))
  const held = loop && heldOf(kernel, loop, coordinate)
  const end = (length: Expr): Expr => (held ? select(lt(int(0), held), int(0), length) : length)
  return all(lists.map((l) => isMissing(l, coordinate, end(l.shape[0]!))))
}

/** Returns the consumer over the rows of each list; `of` is its loop over rows. */
export function restOf(cx: Context, consumer: For, of: For, { lists }: Parts): readonly For[] {
  return lists.map(({ name, shape }, k) => {
    // The loop over all rows becomes the loop over the first list.
    const fresh = k === 0 ? of.var : cx.fresh(of.name)
    const body = substituteStmts(of.body, new Map([[of.var, load(name, [variable(fresh)])]]))
    const loop = stmt<For>({ ...of, var: fresh, extent: shape[0]!, body })
    const [top] = replaceLoop([consumer], of.var, () => loop)
    return top as For
  })
}

/**
 * Gives every part a separate buffer, which the part initialises, if no other statement uses the buffer. Later steps
 * may then keep all elements in registers. The first part's loops have the epilogue already.
 */
export function divide(
  cx: Context,
  body: Body,
  { buffer, first, others }: Parts,
  rests: readonly For[],
): Pick<Outcome, 'body' | 'buffers' | 'unused'> {
  const { name, role } = buffer
  const uses = (b: Body): number => accessesOf(b).filter((a) => a.buffer === name).length
  const tops = body.filter((s) => s.kind === 'for' && s.var === first.top.var)
  const own = [...tops, ...others.map((o) => o.top), ...rests]
  if (role !== 'local' || uses(own) !== uses(body)) return { body, buffers: [], unused: [] }
  const names = labels([first, ...others].map((w) => w.top.nest)).map((l) => cx.fresh(`${name}_${l}`))
  const into = (k: number, s: Stmt): Stmt => renameBuffer([s], name, names[k]!)[0]!
  const started = (o: Writer): Stmt =>
    replaceStmt([o.top], o.access.stmt, () => stmt<Reduce>({ ...(o.access.stmt as Reduce), init: true }))[0]!
  const divided = body.map((s) => {
    if (tops.includes(s)) return into(0, s)
    const k = others.findIndex((o) => o.top === s)
    if (k >= 0) return into(k + 1, started(others[k]!))
    const rest = rests.indexOf(s as For)
    return rest >= 0 ? into(rest + 1, s) : s
  })
  return { body: divided, buffers: names.map((n) => Object.freeze({ ...buffer, name: n })), unused: [name] }
}

/** Returns the names of the loop nests without their common prefix; the full names if one would be empty. */
function labels(nests: readonly string[]): readonly string[] {
  const words = nests.map((n) => n.split('_'))
  const rests = words.map((w) => w.slice(commonWords(words)).join('_'))
  return rests.every((r) => r !== '') ? rests : nests
}

/** Returns the buffers that the consumer writes by its loop over rows, in disjoint elements from now on. */
export function disjointWritesOf(
  consumer: For,
  of: For,
  { first, others }: Parts,
): readonly DisjointWrites[] {
  const nests = [first, ...others].map((w) => w.top.nest)
  const writes = accessesOf([consumer]).filter((a) => a.mode === 'write')
  return [...new Set(writes.map((w) => w.buffer))].flatMap((buffer): readonly DisjointWrites[] => {
    const mine = writes.filter((w) => w.buffer === buffer)
    const by = mine[0]!.index.findIndex((e) => e.kind === 'var' && e.name === of.var)
    const told = mine.every((w) => {
      const e = w.index[by]
      return e?.kind === 'var' && e.name === of.var
    })
    if (!told) return []
    return [{ buffer, nests: nests.map((nest) => [nest]), by: [by], separateInit: true }]
  })
}
