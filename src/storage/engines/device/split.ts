/** Which part each entry goes to, down the tree of a composition: entries are dealt out by the number of the child. */
import { fail } from '../../../ast/diagnostic.ts'
import { when } from '../../../ir/build.ts'
import { binary, type Expr, int, select, variable } from '../../../ir/expr.ts'
import type { Instance, PartTree } from '../../../ir/format.ts'
import { type Column, natural, update } from './column-types.ts'
import { pointOf } from './coordinate-point.ts'
import { Frame } from './frame.ts'
import { before, flag, get, isFirst, next, store } from './kernel.ts'
import { fill } from './level.ts'
import type { Context } from './place.ts'
import { evaluateQueries } from './queries.ts'
import { reduce } from './scan.ts'
import { radixSort } from './sort.ts'

type Node<K extends PartTree['kind']> = Extract<PartTree, { kind: K }>

/**
 * Hands the entries of each part to `leaf`, parts side by side. Takes the frame over.
 * @throws SptError `format/overlap`, `format/leak`
 */
export async function split(
  frame: Frame,
  instance: Instance,
  context: Context,
  leaf: (part: number, frame: Frame) => Promise<void>,
): Promise<void> {
  const visit = async (tree: PartTree, f: Frame): Promise<void> => {
    if (tree.kind === 'leaf') return leaf(tree.part, f)
    const children = tree.kind === 'index' ? tree.children : tree.cases.map((c) => c.child)
    const frames = f.n === 0 ? children.map(() => emptied(f)) : await deal(f, tree, children.length, context)
    if (!frames.includes(f)) f.release()
    const done = await Promise.allSettled(children.map((c, k) => visit(c, frames[k]!)))
    for (const d of done) if (d.status === 'rejected') throw d.reason
  }
  await visit(instance.tree, frame)
}

const CHILD = '@child'

async function deal(
  frame: Frame,
  tree: Node<'index' | 'cases'>,
  count: number,
  context: Context,
): Promise<Frame[]> {
  const { queue: q, n } = frame
  const kept = new Set(frame.columns.keys())
  await evaluateQueries(frame, tree.queries, { ...context, places: new Map() })
  if (tree.kind === 'index') {
    if (!tree.total) await checkIndex(frame, tree, count, context)
    frame.compute(CHILD, tree.index)
  } else {
    await checkCases(frame, tree, context)
    frame.compute(CHILD, caseOf(tree))
  }
  for (const name of [...frame.columns.keys()]) if (!kept.has(name) && name !== CHILD) frame.drop(name)
  const t = frame.terms([variable(CHILD)])
  const order = radixSort(
    q,
    n,
    [
      {
        key: 'child',
        bits: Math.ceil(Math.log2(count)),
        columns: t.columns,
        sizes: t.sizes,
        value: (e) => t.at(e)[0]!,
      },
    ],
    null,
  )
  const bounds = await boundsOf(frame, order, count)
  frame.drop(CHILD)
  const whole = bounds.findIndex((b, k) => k < count && b === 0 && bounds[k + 1] === n)
  if (!order || whole >= 0) {
    q.release(order)
    return Array.from({ length: count }, (_, k) => (k === whole ? frame : emptied(frame)))
  }
  const out = Array.from({ length: count }, (_, k) => {
    const part = frame.part(order, bounds[k]!, bounds[k + 1]! - bounds[k]!)
    // Dealing keeps the order of entries.
    part.sortedBy = frame.sortedBy
    return part
  })
  q.release(order)
  return out
}

/** Where each child's entries begin in `order`, and their number at the end. */
async function boundsOf(frame: Frame, order: Column | null, count: number): Promise<number[]> {
  const { queue: q, n } = frame
  const starts = q.column(count, 'i32', 'starts')
  fill(q, starts, n)
  const t = frame.terms([variable(CHILD)])
  const child = (s: Expr): Expr => t.at(order ? get('x_order', s) : s)[0]!
  q.launch({
    ...t,
    key: `starts of children ${order !== null}`,
    threads: n,
    columns: { ...t.columns, ...(order ? { x_order: natural(order) } : {}), x_starts: update(starts) },
    body: (s) => [
      when(binary('or', isFirst(s), binary('ne', child(s), child(before(s)))), [
        store('x_starts', child(s), s),
      ]),
    ],
  })
  const found = [...(await q.download(starts)), n]
  q.release(starts)
  for (let k = count - 1; k >= 0; k--) found[k] = Math.min(found[k]!, found[k + 1]!)
  return found
}

/** The number of the only case whose condition holds; the case without one takes the rest. */
function caseOf(tree: Node<'cases'>): Expr {
  const rest = Math.max(
    0,
    tree.cases.findIndex((c) => c.where === null),
  )
  return tree.cases.reduceRight<Expr>(
    (other, { where }, k) => (where ? select(where, int(k), other) : other),
    int(rest),
  )
}

async function checkIndex(frame: Frame, tree: Node<'index'>, count: number, context: Context): Promise<void> {
  const { queue: q, n } = frame
  const t = frame.terms([tree.index])
  const cell = q.cells()
  reduce(q, {
    ...t,
    key: `leaks ${count} ${t.key}`,
    n,
    op: 'max',
    values: (e) => {
      const k = t.at(e)[0]!
      return [select(binary('or', binary('lt', k, int(0)), binary('ge', k, int(count))), next(e), int(0))]
    },
    count: 1,
    cells: cell,
  })
  const [leak = 0] = await q.numbers([cell])
  if (leak > 0)
    await leaks(frame, leak - 1, `${tree.text} gives it no number of ${count} parts`, tree, context)
}

async function checkCases(frame: Frame, tree: Node<'cases'>, context: Context): Promise<void> {
  const conditions = tree.cases.flatMap((c) => (c.where ? [c.where] : []))
  const rest = conditions.length < tree.cases.length
  if (conditions.length < 2 && rest) return
  const { queue: q, n } = frame
  const t = frame.terms(conditions)
  const cells = q.cells(2)
  reduce(q, {
    ...t,
    key: `cases ${rest} ${t.key}`,
    n,
    op: 'max',
    values: (e) => {
      const holds = t
        .at(e)
        .map(flag)
        .reduce((a, b) => binary('add', a, b))
      return [
        select(binary('gt', holds, int(1)), next(e), int(0)),
        rest ? int(0) : select(binary('eq', holds, int(0)), next(e), int(0)),
      ]
    },
    count: 2,
    cells,
  })
  const [overlap = 0, leak = 0] = await q.numbers([cells, cells + 1])
  const texts = tree.cases.map((c) => c.text).join(', ')
  if (overlap > 0)
    fail({
      code: 'format/overlap',
      message: `two of ${texts} hold ${await pointOf(frame, names(context), overlap - 1)}`,
      ...(tree.span ? { span: tree.span } : {}),
      expected: 'parts that hold each coordinate once',
      hint: 'make the conditions exclude one another',
    })
  if (leak > 0) await leaks(frame, leak - 1, `no condition holds of ${texts}`, tree, context)
}

const names = (context: Context): string[] => context.dims.map((d) => d.name)

async function leaks(
  frame: Frame,
  entry: number,
  why: string,
  tree: Node<'index' | 'cases'>,
  context: Context,
): Promise<never> {
  return fail({
    code: 'format/leak',
    message: `no part holds ${await pointOf(frame, names(context), entry)}: ${why}`,
    ...(tree.span ? { span: tree.span } : {}),
    expected: 'parts that hold every coordinate',
    hint: 'add a last part without a condition: it takes the rest',
  })
}

function emptied(frame: Frame): Frame {
  const out = new Frame(frame.queue, 0, frame.sizes, frame.tables)
  for (const [name, b] of frame.bounds) out.bounds.set(name, b)
  for (const [name, column] of frame.columns) out.set(name, frame.queue.column(0, column.dtype, name))
  out.setEntry(frame.queue.column(0, 'i32', 'entry'))
  return out
}
