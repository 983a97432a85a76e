/**
 * Tests of a format before there are data: maps and conditions that do not depend on stored coordinates are evaluated
 * for all coordinates of small tensors, and for the corners of blocks in larger ones. A failure here is a failure for
 * some tensor.
 */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { applyMap, point } from '../../columns/coordmap.ts'
import { type StoredAxis, sourceName } from '../../ir/coordinates/axis.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { freeVars, someExpr, walkExpr } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import type { FormatInstance, Instance } from '../../ir/formats/format.ts'
import { childrenOf, type PartTree, selectorsOf } from '../../ir/formats/part-tree.ts'
import { type SpanOption, spanOf } from './format-arguments.ts'
import { type Samples, sampleCoordinates } from './sample-coordinates.ts'

/** Keys of the instances that passed. */
const passed = new Set<string>()
const MAX_REMEMBERED = 1000

/**
 * Tests the part of each coordinate, and each part on its coordinates, except below conditions on data, whose coordinates
 * are unknown. @param firstIdentical for each part, the first part with the same format and arguments @throws SptError
 * `format/not-inverse`, `format/map-range`, `format/overlap`, `format/leak`
 */
export function testInstance(instance: Instance, firstIdentical: readonly number[], site: SpanOption): void {
  const key = keyOfTrial(instance)
  if (passed.has(key)) return
  const trial = testParts(instance, firstIdentical, site)
  if (trial) {
    const { samples, rowsOfParts } = trial
    firstIdentical.forEach((first, k) => {
      if (first !== k) return
      const rows = rowsOfParts[k]!
      testPart(
        instance.parts[k]!.instance,
        instance.over,
        samples.where((e) => rows[e] === 1),
        site,
      )
    })
  }
  if (passed.size >= MAX_REMEMBERED) passed.clear()
  passed.add(key)
}

/** A coordinate, with its shape, that no part holds by conditions on coordinates; `null` if no sample shows one. */
export function omittedCoordinate(instance: Instance): string | null {
  const trial = testParts(
    instance,
    instance.parts.map((_, k) => k),
    {},
  )
  return trial?.omitted ?? null
}

function testParts(instance: Instance, firstIdentical: readonly number[], site: SpanOption): Trial | null {
  const samples = sampleCoordinates(instance.over, constantsOf(instance))
  if (!samples) return null
  const reached = instance.parts.map(() => new Uint8Array(samples.rows))
  const trial: Trial = { instance, samples, site, rowsOfParts: firstIdentical.map((k) => reached[k]!) }
  testTree(instance.tree, new Uint8Array(samples.rows).fill(1), trial)
  return trial
}

function testPart(
  part: FormatInstance,
  over: readonly StoredAxis[],
  samples: Samples,
  site: SpanOption,
): void {
  const sampledNames = new Set(samples.names)
  const exprs = [...part.map, ...part.inverse]
  const axisNames = new Set(part.order)
  if (samples.rows === 0 || exprs.some((e) => !isEvaluable(e, sampledNames, axisNames))) return
  const names = over.map(sourceName)
  const evaluateMap = (
    map: readonly Expr[],
    inputs: readonly string[],
    columns: readonly Int32Array[],
  ): Int32Array[] =>
    applyMap({ map, inputs: [...inputs, ...samples.names] }, [...columns, ...samples.columns])
  const coords = samples.columns.slice(0, over.length)
  const mappedCoords = evaluateMap(part.map, [], [])
  part.order.forEach((name, k) => {
    const axis = part.axes.find((a) => a.name === name)!
    const isBounded = isEvaluable(axis.extent, sampledNames)
    const extents = isBounded ? evaluateMap([axis.extent], [], [])[0]! : null
    const coordinates = mappedCoords[k]!
    for (let e = 0; e < coordinates.length; e++) {
      if (coordinates[e]! >= 0 && (!extents || coordinates[e]! < extents[e]!)) continue
      failWith(
        'format/map-range',
        `${part.text} puts ${point(names, coords, e)} of ${samples.shape(e)} at ${coordinates[e]} on axis ${name}`,
        {
          ...spanOf(part.map[k]!.span, site.span, axis.span),
          expected: extents
            ? `0 to ${extents[e]! - 1}, the extent of ${name} being ${extents[e]}`
            : '0 or more',
          hint: 'correct the map, or the extent of the axis',
        },
      )
    }
  })
  const restored = evaluateMap(part.inverse, part.order, mappedCoords)
  for (let k = 0; k < coords.length; k++)
    for (let e = 0; e < coords[k]!.length; e++) {
      if (restored[k]![e] === coords[k]![e]) continue
      failWith(
        'format/not-inverse',
        `the inverse of ${part.text} does not undo the map: ${point(names, coords, e)} of ${samples.shape(e)} goes to ${point(part.order, mappedCoords, e)}, and that back to (${restored.map((coordinates) => coordinates[e]).join(', ')})`,
        {
          ...spanOf(part.inverse[k]!.span, site.span),
          expected: 'the original coordinate',
          hint: 'the map must keep different coordinates apart, and the inverse must name the original coordinates in order',
        },
      )
    }
}

interface Trial {
  readonly instance: Instance
  readonly samples: Samples
  /** For each part its rows; equal parts share one array. */
  readonly rowsOfParts: readonly Uint8Array[]
  readonly site: SpanOption
  /** The first coordinate that the only part of a format leaves out. */
  omitted?: string
}

function testTree(tree: PartTree, rows: Uint8Array, trial: Trial): void {
  if (tree.kind === 'leaf') {
    const partRows = trial.rowsOfParts[tree.part]!
    for (let e = 0; e < rows.length; e++) if (rows[e] === 1) partRows[e] = 1
  } else if (!isDecidable(tree, trial.samples)) {
    // A bucket may receive any coordinate; conditions on data may exclude some.
    if (tree.kind === 'index') for (const child of tree.children) testTree(child, rows, trial)
  } else {
    const numbers =
      tree.kind === 'index' ? trial.samples.evaluate(tree.index) : caseNumbers(tree, rows, trial)
    childrenOf(tree).forEach((child, k) => {
      testTree(
        child,
        rows.map((r, e) => (r === 1 && numbers[e] === k ? 1 : 0)),
        trial,
      )
    })
  }
}

function caseNumbers(tree: Extract<PartTree, { kind: 'cases' }>, rows: Uint8Array, trial: Trial): Int32Array {
  const { cases } = tree
  const { instance, samples: tried, site } = trial
  const fallback = cases[cases.length - 1]!.where === null ? cases.length - 1 : -1
  const numbers = new Int32Array(rows.length).fill(fallback)
  const names = instance.over.map(sourceName)
  const describe = (e: number): string =>
    `${point(names, tried.columns.slice(0, names.length), e)} of ${tried.shape(e)}`
  const results = cases.map((c) => (c.where ? tried.evaluate(c.where) : null))
  for (let e = 0; e < rows.length; e++) {
    if (rows[e] === 0) continue
    const matches = cases.flatMap((_, k) => (results[k]?.[e] === 1 ? [k] : []))
    if (matches.length > 1) {
      const [a, b] = matches.map((k) => cases[k]!)
      // Parts with equal text are distinguished by their numbers.
      const caseName = (c: typeof a, k: number): string =>
        a!.text === b!.text ? `${c!.text} (part ${matches[k]! + 1})` : c!.text
      const firstSpan = a!.where?.span
      failWith(
        'format/overlap',
        `${describe(e)} belongs to both ${caseName(a, 0)} and ${caseName(b, 1)} of ${instance.text}`,
        {
          ...spanOf(b!.where?.span, site.span, tree.span),
          ...(firstSpan && b!.where?.span
            ? { labels: [{ span: firstSpan, text: `${caseName(a, 0)} takes it, too` }] }
            : {}),
          expected: 'conditions, at most one of which holds',
          hint: 'exclude the elements of the first part in the second, or leave the last part without a condition',
        },
      )
    }
    numbers[e] = matches[0] ?? fallback
    // A single format may be meant for tensors that fit it: building rejects the others.
    if (numbers[e]! >= 0) continue
    trial.omitted ??= describe(e)
    if (cases.length > 1)
      failWith('format/leak', `${describe(e)} belongs to no part of ${instance.text}`, {
        ...spanOf(site.span, tree.span),
        expected: 'a part for each coordinate',
        hint: 'add a part without a condition for the remaining elements',
      })
  }
  return numbers
}

/** True if a node distinguishes parts by coordinates and sizes alone. */
function isDecidable(tree: Exclude<PartTree, { kind: 'leaf' }>, tried: Samples): boolean {
  const names = new Set(tried.names)
  return selectorsOf(tree).every((e) => isEvaluable(e, names))
}

/** True for integer arithmetic over known columns. */
function isEvaluable(
  e: Expr,
  names: ReadonlySet<string>,
  otherNames: ReadonlySet<string> = new Set(),
): boolean {
  if ([...freeVars(e)].some((v) => !names.has(v) && !otherNames.has(v))) return false
  return !someExpr(
    e,
    (x) => x.kind === 'load' || x.kind === 'call' || x.kind === 'cast' || x.kind === 'search',
  )
}

function constantsOf({ tree: root, parts }: Instance): number[] {
  const constants = new Set<number>()
  const collect = (e: Expr): void =>
    walkExpr(e, (x) => {
      if (x.kind === 'const' && Number.isInteger(x.value)) constants.add(Math.abs(x.value))
    })
  const visit = (tree: PartTree): void => {
    if (tree.kind === 'leaf') return
    selectorsOf(tree).forEach(collect)
    childrenOf(tree).forEach(visit)
  }
  visit(root)
  for (const { instance: p } of parts) for (const e of [...p.map, ...p.inverse]) collect(e)
  return [...constants]
}

/** Instances with one key have identical results. */
function keyOfTrial({ over, tree, parts }: Instance): string {
  const node = (trial: PartTree): string => {
    if (trial.kind === 'leaf') return String(trial.part)
    return trial.kind === 'index'
      ? `(${keyOf(trial.index)} ${trial.children.map(node).join(' ')})`
      : `(${trial.cases.map((c) => `${c.where ? keyOf(c.where) : ''}: ${node(c.child)}`).join(', ')})`
  }
  const axis = (a: StoredAxis): string => `${a.name} ${keyOf(a.extent)}`
  const part = (p: FormatInstance): string =>
    [
      p.order.join(),
      ...p.axes.map(axis),
      ...p.map.map(keyOf),
      ...p.inverse.map(keyOf),
      p.where ? keyOf(p.where) : '',
    ].join(' ')
  return [...over.map(axis), node(tree), ...parts.map((p) => part(p.instance))].join('\n')
}
