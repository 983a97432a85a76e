/** Register fragments: tiles distributed over the lanes of a warp, as the elements that one thread holds. */
import { type Lanes, splitBy } from '../../analysis/instructions/lane-groups.ts'
import { matchInstr } from '../../analysis/instructions/match.ts'
import type { Facts } from '../../analysis/integers/facts.ts'
import { linear } from '../../analysis/integers/linear.ts'
import { fail, invariant } from '../../ast/diagnostics/diagnostic.ts'
import { type Expr, int, mul } from '../../ir/expressions/expr.ts'
import { freeVars, mentions } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import type { Instr, Memory, Operand } from '../../ir/instructions/instr.ts'
import type { Matrix } from '../../ir/instructions/instr-call.ts'
import { accessesOf } from '../../ir/statements/accesses.ts'
import type { Buffer, For, Stmt } from '../../ir/statements/loops.ts'
import { type Body, rewriteStmts, someStmt, stmt, walkStmts } from '../../ir/statements/tree.ts'
import { address } from '../memory/buffer-flattening.ts'

/** The index of a slot of the tile that contains `index`, in the shape that `tiledShape` gives. */
export function physical(index: readonly Expr[], memory: Memory, slot: Expr): readonly Expr[] {
  const at = index.length - memory.shape.length
  return [...index.slice(0, at), ...memory.shape.map((t, d) => splitBy(index[at + d]!, t).quotient), slot]
}

export const sameElements = (a: Memory, b: Memory): boolean =>
  a.threads === b.threads &&
  a.shape.join() === b.shape.join() &&
  a.element.every((e, d) => keyOf(e) === keyOf(b.element[d]!))

/** Returns true if the loop contains a reduction whose target does not depend on it. */
export const combines = (loop: For): boolean =>
  someStmt(
    loop.body,
    (s) => s.kind === 'reduce' && s.targets.some((t) => t.index.every((e) => !mentions(e, loop.var))),
  )

export function reject(
  s: Stmt,
  why: string,
  hint = 'keep what is read across threads in shared memory',
): never {
  return fail({
    code: 'schedule/across-lanes',
    message: `${why}, and registers belong to a single thread`,
    ...(s.span ? { span: s.span } : {}),
    expected: 'loops over the elements of whole tiles, or an instruction',
    hint,
  })
}

/**
 * Throws `schedule/across-lanes` for elements that are visited in another order than in the tile; names the reversed loop, if one exists.
 */
export function rejectOrder(s: Stmt, used: readonly TileAccess[], loops: ReadonlyMap<string, For>): never {
  const by = used.flatMap(turned).flatMap((v) => loops.get(v) ?? [])[0]
  if (!by)
    return reject(
      s,
      s.kind === 'for'
        ? `${s.nest} does not go through the elements of a tile one by one`
        : 'one element of a tile that threads hold together is used alone',
    )
  const name = `${by.nest}.${by.name}`
  return reject(
    s,
    `${name} goes through elements of a tile in another order than from 0 upwards`,
    `leave out the reverse or serpentine of ${name}`,
  )
}

/** Variables with a negative coefficient or inside a selection, in the index of a tile. */
const turned = ({ index, memory }: TileAccess): readonly string[] =>
  index
    .slice(index.length - memory.shape.length)
    .flatMap((e) => [...linear(e).terms.values()])
    .flatMap(({ term, coefficient: c }) => (c < 0 || term.kind === 'select' ? [...freeVars(term)] : []))

/** An access to elements of a tile. The last dimensions of `index` are those of the tile. */
export interface TileAccess {
  readonly index: readonly Expr[]
  readonly memory: Memory
}

/** Unrolls constant loops over tiles, because registers have no run-time index. */
export function unrolled(body: Body, lanes: Lanes): Body {
  return rewriteStmts(body, {
    stmt: (s) => {
      if (s.kind !== 'for' || s.mode.kind !== 'serial' || s.extent.kind !== 'const') return undefined
      const chooses = accessesOf(s.body).some(
        (a) => lanes.buffers.has(a.buffer) && a.index.some((e) => freeVars(e).has(s.var)),
      )
      return chooses ? stmt<For>({ ...s, mode: { kind: 'unroll', factor: null } }) : undefined
    },
  })
}

/**
 * Tensor maps (TMA descriptors): buffers as matrices whose boxes instructions copy. The last dimension is the columns, all other
 * dimensions together are the rows.
 */
export function matrixOf(b: Buffer, o: Operand): Matrix {
  const [rows, columns] = o.shape
  invariant(o.mapped && rows !== undefined && columns !== undefined, `${o.name} is no box`)
  return {
    rows: b.shape.slice(0, -1).reduce(mul, int(1)),
    columns: b.shape.at(-1)!,
    box: [rows, columns],
    swizzle: o.mapped.swizzle,
  }
}

/** The row and the column of an element. */
export const matrixIndex = (b: Buffer, index: readonly Expr[]): readonly [Expr, Expr] => [
  address(b.shape.slice(0, -1), index.slice(0, -1)),
  index.at(-1)!,
]

/**
 * Checks proxy fences (`fence.proxy.async`). If an instruction reads shared memory through the async proxy, every instruction that fills
 * this memory must be declared `fenced`, because the proxy may not see ordinary stores or asynchronous copies of the threads (PTX ISA,
 * "Async proxy").
 */
interface Reader {
  readonly loop: For
  readonly instr: Instr
  readonly operand: string
}

/** Throws SptError `schedule/unfenced` if an instruction reads a buffer through the async proxy that is filled without a fence. */
export function checkFences(body: Body, buffers: ReadonlyMap<string, Buffer>, facts: Facts): void {
  const readers = new Map<string, Reader>()
  const writers = new Map<string, string>()
  const ordinary = (s: Stmt, by: string): void => {
    for (const a of accessesOf([s]))
      if (a.mode === 'write' && !writers.has(a.buffer)) writers.set(a.buffer, by)
  }
  walkStmts(body, (s, path) => {
    if (s.kind !== 'for' || s.mode.kind !== 'instr') {
      if (s.kind === 'store' || s.kind === 'reduce') ordinary(s, path.at(-1)?.nest ?? 'a store')
      return true
    }
    const { instr } = s.mode
    const match = matchInstr(instr, s, { buffer: (name) => buffers.get(name), facts })
    if (match.kind === 'mismatch') return false
    for (const o of instr.operands) {
      const at = match.operands.get(o.name)
      if (!at) continue
      if (o.mode !== 'write' && o.fenced) readers.set(at.buffer, { loop: s, instr, operand: o.name })
      if (o.mode !== 'read' && !o.fenced) ordinary(s, instr.name)
    }
    return false
  })
  for (const [buffer, { loop, instr, operand }] of readers) {
    const by = writers.get(buffer)
    if (by === undefined) continue
    fail({
      code: 'schedule/unfenced',
      message: `${instr.name} reads operand ${operand} through the async proxy, and ${by} fills ${buffer} without a fence`,
      ...(loop.span ? { span: loop.span } : {}),
      expected: `${buffer} filled by instructions whose written operand is declared \`fenced\``,
      hint: 'tensorize the copy with an instruction that writes through the proxy or ends with a fence',
    })
  }
}
