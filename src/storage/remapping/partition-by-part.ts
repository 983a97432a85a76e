/** Partitioning of entries by the part of a composition, along its decision tree. */
import { failWith, type Span } from '../../ast/diagnostics/diagnostic.ts'
import type { Coroutine } from '../../ast/work.ts'
import type { Column, Frame } from '../../columns/column-engine.ts'
import type { Scope } from '../../columns/engine-operands.ts'
import { add, binary, type Expr, eq, ge, int, lt, select } from '../../ir/expressions/expr.ts'
import type { Instance } from '../../ir/formats/format.ts'
import { childrenOf, type PartTree, selectorsOf } from '../../ir/formats/part-tree.ts'
import { evaluateQueries } from '../columns/attribute-queries.ts'
import { checkExpressions } from '../columns/table-reads.ts'
import { pointAt } from '../storage.ts'

type Node<K extends PartTree['kind']> = Extract<PartTree, { kind: K }>

const CHILD = '@child'

/**
 * Passes the entries of each part to `leaf`, concurrently; each entry goes to exactly one part. Takes ownership of the
 * frame. @throws SptError `format/overlap`, `format/leak`, and as `evaluateQueries`
 */
export function* partitionByPart<C extends Column>(
  frame: Frame<C>,
  instance: Instance,
  scope: Omit<Scope<C>, 'places'>,
  leaf: (part: number, frame: Frame<C>) => Coroutine<void>,
): Coroutine<void> {
  function* visit(tree: PartTree, treeFrame: Frame<C>): Coroutine<void> {
    if (tree.kind === 'leaf') return yield* leaf(tree.part, treeFrame)
    const children = childrenOf(tree)
    if (treeFrame.n > 0) yield* assignChild(treeFrame, tree, instance, scope)
    const frames = yield* treeFrame.engine.partition(treeFrame, CHILD, children.length)
    yield* treeFrame.engine.runConcurrently(children.map((child, k) => visit(child, frames[k]!)))
  }
  yield* visit(instance.tree, frame)
}

/** Adds the column `CHILD` with the number of each entry's child, and drops all columns of queries. */
function* assignChild<C extends Column>(
  frame: Frame<C>,
  tree: Node<'index' | 'cases'>,
  instance: Instance,
  scope: Omit<Scope<C>, 'places'>,
): Coroutine<void> {
  const { engine } = frame
  const existingNames = new Set(frame.names())
  yield* evaluateQueries(frame, tree.queries, { ...scope, places: new Map() })
  yield* checkExpressions(frame, selectorsOf(tree), scope.dims, tree.queries)
  const context = { frame, instance, dims: scope.dims, span: tree.span ? { span: tree.span } : {} }
  if (tree.kind === 'index') {
    const count = int(tree.children.length)
    const outOfRange = tree.total ? [] : [binary('or', lt(tree.index, int(0)), ge(tree.index, count))]
    const [leak = -1] = yield* engine.computeChecked(frame, CHILD, tree.index, outOfRange)
    if (leak >= 0)
      yield* rejectLeak(
        context,
        leak,
        `it is beyond the last part of ${tree.text}`,
        'add a greater width, or `split`, which cuts what is longer into pieces',
      )
  } else {
    const [overlap = -1, leak = -1] = yield* engine.computeChecked(
      frame,
      CHILD,
      caseNumber(tree),
      caseViolations(tree),
    )
    if (overlap >= 0) yield* rejectOverlap(context, overlap, tree)
    if (leak >= 0)
      yield* rejectLeak(
        context,
        leak,
        `no condition holds of ${tree.cases.map((c) => c.text).join(' and ')}`,
        'add a part for the rest, last and without a condition',
      )
  }
  for (const name of frame.names()) if (!existingNames.has(name) && name !== CHILD) frame.drop(name)
}

/** The number of the case whose condition holds, otherwise that of the case without a condition. */
function caseNumber(tree: Node<'cases'>): Expr {
  const fallback = Math.max(
    0,
    tree.cases.findIndex((c) => c.where === null),
  )
  return tree.cases.reduceRight<Expr>(
    (other, { where }, k) => (where ? select(where, int(k), other) : other),
    int(fallback),
  )
}

/** Two conditions hold; or none holds, although every case has one. */
function caseViolations(tree: Node<'cases'>): readonly Expr[] {
  const conditions = selectorsOf(tree)
  const hasFallback = conditions.length < tree.cases.length
  if (conditions.length < 2 && hasFallback) return []
  const matchCount = conditions.map((c) => select(c, int(1), int(0))).reduce(add)
  return [binary('gt', matchCount, int(1)), ...(hasFallback ? [] : [eq(matchCount, int(0))])]
}

interface ErrorContext<C extends Column> {
  readonly frame: Frame<C>
  readonly instance: Instance
  readonly dims: Scope<C>['dims']
  readonly span: { readonly span?: Span }
}

function* rejectLeak<C extends Column>(
  r: ErrorContext<C>,
  entry: number,
  why: string,
  hint: string,
): Coroutine<never> {
  return failWith(
    'format/leak',
    `no part of ${r.instance.text} holds ${yield* pointAt(r.frame, r.dims, entry)}: ${why}`,
    { ...r.span, expected: 'a part for every stored coordinate', hint },
  )
}

function* rejectOverlap<C extends Column>(
  r: ErrorContext<C>,
  entry: number,
  { cases }: Node<'cases'>,
): Coroutine<never> {
  const conditions = cases.flatMap(({ where }) => (where ? [select(where, int(1), int(0))] : [int(0)]))
  const matches = yield* r.frame.engine.valuesAt(r.frame, conditions, entry)
  const [a, b] = cases
    .filter((_, k) => matches[k] === 1)
    .map(({ text, child }) => {
      const label = child.kind === 'leaf' ? r.instance.parts[child.part]!.label : ''
      return label === '' || label === text ? text : `${label} (${text})`
    })
  return failWith(
    'format/overlap',
    `two parts of ${r.instance.text} hold ${yield* pointAt(r.frame, r.dims, entry)}: ${a} and ${b}`,
    {
      ...r.span,
      expected: 'a single part for every stored coordinate',
      hint: 'make the conditions exclude each other, or omit the last condition for the remaining elements',
    },
  )
}
