/** Which part of a format or composition each entry goes to. */
import { fail, type Span } from '../../ast/diagnostic.ts'
import { allocate, gatherInto } from '../../columns/allocate.ts'
import { applyCondition, applyMap, point } from '../../columns/coordmap.ts'
import type { Column, MapTable } from '../../columns/expression-program.ts'
import { borrow, giveBack, reusing } from '../../columns/scratch.ts'
import type { Instance, PartTree, Query } from '../../ir/format.ts'
import type { EntryValues, Given } from '../given.ts'
import { evaluateQueries, giveBackOf } from '../queries/queries.ts'
import { listsOf, withSegments } from '../tables.ts'
import { gatherValues } from '../values.ts'

export type { EntryValues, Given } from '../given.ts'
export { type Placed, placeEntries } from './place.ts'

/** What a part holds of the entries. */
export interface PartEntries {
  /** In input order; `null`: all of them. */
  readonly entries: Int32Array | null
}

interface Scope {
  readonly entries: Int32Array | null
  readonly coords: readonly Int32Array[]
  readonly values: EntryValues | null
  /** Whether `entries` will be given back. */
  readonly borrowed: boolean
}

interface Context {
  readonly instance: Instance
  readonly names: readonly string[]
  readonly given: Given
  readonly tables: ReadonlyMap<string, MapTable>
  readonly out: PartEntries[]
  /** Whether entries ascend; those of a part do then too. `undefined`: not known. */
  readonly ascending: boolean | undefined
}

/**
 * The entries of each part. Every entry goes to exactly one. O(entries × depth); arrays are read only.
 *
 * @param coords one array for each axis of `instance.over`
 * @param values `null`: a pattern, whose values are all 1
 * @param ascending whether entries ascend, so that no two are equal; left out: it is looked at where it matters
 * @throws SptError `format/overlap`, `format/leak` with the coordinate, and as `evaluateQueries`
 */
export function splitEntries(
  instance: Instance,
  coords: readonly Int32Array[],
  values: EntryValues | null,
  given: Given,
  ascending?: boolean,
): PartEntries[] {
  const none = new Int32Array(0)
  const out: PartEntries[] = instance.parts.map(() => ({ entries: none }))
  const names = instance.over.map((a) => a.name)
  const known = withSegments(given)
  const at: Context = {
    instance,
    names,
    given: known,
    tables: listsOf(known),
    out,
    ascending: ascending || undefined,
  }
  reusing(() => visit(instance.tree, { entries: null, coords, values, borrowed: false }, at))
  return out
}

function visit(tree: PartTree, scope: Scope, at: Context): void {
  if (tree.kind === 'leaf') {
    const { entries } = scope
    at.out[tree.part] = { entries: entries && scope.borrowed ? entries.slice() : entries }
    return
  }
  const n = scope.coords[0]?.length ?? 0
  // No entries hold no part: what is below has its empty lists already.
  if (n === 0) return
  const columns = new Map(at.names.map((name, k) => [name, scope.coords[k]!]))
  const sorted = { places: new Map(), tables: at.tables }
  const asked = evaluateQueries(tree.queries, columns, scope.values, at.given, sorted, at.ascending)
  const inputs = [...columns.keys(), ...asked.keys()]
  const all = [...columns.values(), ...asked.values()]
  const which = tree.kind === 'index' ? indexed(tree, inputs, all, at) : chosen(tree, inputs, all, at)
  giveBackOf([...asked.values()], [which])
  const children = tree.kind === 'index' ? tree.children : tree.cases.map((c) => c.child)
  deal(which, children, scope, at, all)
}

function indexed(
  tree: Extract<PartTree, { kind: 'index' }>,
  inputs: readonly string[],
  columns: readonly Column[],
  at: Context,
): Int32Array {
  const [which] = applyMap(
    { map: [tree.index], inputs, sizes: at.given.sizes, tables: at.tables, temporary: true },
    columns,
  )
  const count = tree.children.length
  for (let e = 0; e < which!.length; e++)
    if (which![e]! < 0 || which![e]! >= count)
      leak(at, columns, e, `it is beyond the last part of ${tree.text}`, {
        span: tree.span,
        hint: 'add a greater width, or `split`, which cuts what is longer into pieces',
      })
  return which!
}

/** Number of the only case whose condition holds; the case without a condition takes the rest. */
function chosen(
  tree: Extract<PartTree, { kind: 'cases' }>,
  inputs: readonly string[],
  columns: readonly Column[],
  at: Context,
): Int32Array {
  const n = columns[0]!.length
  const rest = tree.cases.findIndex((c) => c.where === null)
  const which = borrow(n, 'entries').fill(-1)
  tree.cases.forEach(({ where }, k) => {
    if (where === null) return
    const holds = applyCondition(where, { inputs, sizes: at.given.sizes, tables: at.tables }, columns)
    for (let e = 0; e < n; e++) {
      if (holds[e] === 0) continue
      if (which[e]! >= 0) overlap(tree, at, columns, e, which[e]!, k)
      which[e] = k
    }
  })
  for (let e = 0; e < n; e++) {
    if (which[e]! >= 0) continue
    if (rest < 0)
      leak(at, columns, e, `no condition holds of ${listed(tree.cases.map((c) => c.text))}`, {
        span: tree.span,
        hint: 'add a part for the rest, last and without a condition',
      })
    which[e] = rest
  }
  return which
}

/** Hands entries to the children they belong to: a counting sort, then one copy of what children look at. */
function deal(
  which: Int32Array,
  children: readonly PartTree[],
  scope: Scope,
  at: Context,
  inputs: readonly Column[],
): void {
  const n = which.length
  const bounds = new Int32Array(children.length + 1)
  countRuns(which, bounds)
  const whole = children.findIndex((_, k) => bounds[k + 1] === n)
  if (whole >= 0) {
    visit(children[whole]!, scope, at)
    return
  }
  for (let k = 0; k < children.length; k++) bounds[k + 1]! += bounds[k]!
  // Parts of all entries keep their share of it.
  const kept = !scope.entries && children.some((c) => c.kind === 'leaf')
  const order = (kept ? allocate : borrow)(n, 'entries')
  dealRuns(which, bounds.slice(), order)
  giveBackOf([which], inputs)
  children.forEach((child, k) => {
    const local = order.subarray(bounds[k]!, bounds[k + 1]!)
    const leaf = child.kind === 'leaf'
    const above = scope.entries
    const own = above && gatherInto((leaf ? allocate : borrow)(local.length, 'entries'), above, local)
    const { values } = scope
    const coords = leaf ? [] : scope.coords.map((c) => gatherInto(borrow(local.length, 'entries'), c, local))
    visit(
      child,
      {
        entries: own ?? local,
        borrowed: !leaf && (own !== null || !kept),
        coords,
        values:
          leaf || !values || !asksValues(child) ? null : { ...values, values: gatherValues(values, local) },
      },
      at,
    )
    for (const c of coords) giveBack(c)
    if (own && !leaf) giveBack(own)
  })
  if (!kept) giveBack(order)
}

/** Neighbours mostly go together: counters are touched once for a run of equal numbers. */
function countRuns(which: Int32Array, bounds: Int32Array): void {
  const n = which.length
  for (let lo = 0; lo < n; ) {
    const k = which[lo]!
    let hi = lo + 1
    while (hi < n && which[hi] === k) hi++
    bounds[k + 1]! += hi - lo
    lo = hi
  }
}

function dealRuns(which: Int32Array, next: Int32Array, order: Int32Array): void {
  const n = which.length
  for (let e = 0; e < n; ) {
    const k = which[e]!
    let at = next[k]!
    do order[at++] = e++
    while (e < n && which[e] === k)
    next[k] = at
  }
}

const looks = (q: Query): boolean => q.kind === 'value' || q.kind === 'largest'

const asksValues = (tree: PartTree): boolean =>
  tree.kind !== 'leaf' &&
  (tree.queries.some(looks) ||
    (tree.kind === 'index' ? tree.children : tree.cases.map((c) => c.child)).some(asksValues))

function leak(
  at: Context,
  columns: readonly Column[],
  e: number,
  why: string,
  { span, hint }: { readonly span?: Span | undefined; readonly hint: string },
): never {
  fail({
    code: 'format/leak',
    message: `no part of ${at.instance.text} holds ${where(at, columns, e)}: ${why}`,
    ...(span ? { span } : {}),
    expected: 'a part for every stored coordinate',
    hint,
  })
}

function overlap(
  tree: Extract<PartTree, { kind: 'cases' }>,
  at: Context,
  columns: readonly Column[],
  e: number,
  a: number,
  b: number,
): never {
  const name = (k: number): string => {
    const { text, child } = tree.cases[k]!
    const label = child.kind === 'leaf' ? at.instance.parts[child.part]!.label : ''
    return label === '' || label === text ? text : `${label} (${text})`
  }
  fail({
    code: 'format/overlap',
    message: `two parts of ${at.instance.text} hold ${where(at, columns, e)}: ${name(a)} and ${name(b)}`,
    ...(tree.span ? { span: tree.span } : {}),
    expected: 'one part for every stored coordinate',
    hint: 'make the conditions exclude each other, or leave the last one out so that it takes the rest',
  })
}

const where = (at: Context, columns: readonly Column[], e: number): string =>
  point(at.names, columns.slice(0, at.names.length), e)

const listed = (texts: readonly string[]): string => texts.join(' and ')
