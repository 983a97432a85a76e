/** Level properties (full, compact; Chou et al. 2018) that formats claim, checked on every segment. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Coroutine } from '../../ast/work.ts'
import { MAX_POSITIONS } from '../../columns/allocate.ts'
import { type Column, ENTRY, type Engine, Frame } from '../../columns/column-engine.ts'
import type { Level } from '../../columns/stored-level.ts'
import { hasWidth, isDense, isNonunique, isPadded } from '../../ir/coordinates/axis.ts'
import {
  add,
  all,
  binary,
  div,
  type Expr,
  eq,
  ge,
  int,
  load,
  lt,
  mod,
  mul,
  search,
  select,
  sub,
  variable,
} from '../../ir/expressions/expr.ts'
import { computeAncestorCoordinates } from '../../levels/index.ts'
import { coordinateAt, coordinateColumn } from '../../levels/indices.ts'
import { pointOf } from '../storage.ts'

/** `full`: no coordinate is absent. `compact`: there is no padding. */
export type LevelProperty = 'full' | 'compact'

/** Checks the last level of a chain, root first; segments under padding are skipped. @throws `format/claim` */
export function* checkLevelProperty<C extends Column>(
  engine: Engine<C>,
  chain: readonly Level<C>[],
  claim: LevelProperty,
): Coroutine<void> {
  const level = chain.at(-1)!
  const parents = chain.at(-2)?.positions ?? 1
  if (parents === 0 || holdsTrivially(level, claim)) return
  // One comparison decides for most segments. Otherwise, each coordinate is searched for.
  const checksPerSegment = claim === 'full' && !isDecidedByLength(level) ? level.extent : 1
  const batch = Math.floor(MAX_POSITIONS / checksPerSegment)
  for (let first = 0; first < parents; first += batch) {
    const frame = new Frame(engine, Math.min(batch, parents - first) * checksPerSegment, new Map())
    const p =
      checksPerSegment === 1
        ? variable(ENTRY)
        : add(div(variable(ENTRY), frame.bindSize(checksPerSegment)), frame.bindSize(first))
    const allocated: C[] = []
    const fails =
      claim === 'compact'
        ? hasPadding(frame, level, p)
        : checksPerSegment === 1
          ? isShort(frame, level, p)
          : lacksCoordinate(
              frame,
              level,
              p,
              mod(variable(ENTRY), frame.bindSize(checksPerSegment)),
              allocated,
            )
    const [, anyFailure] = yield* engine.bounds(frame, select(fails, int(1), int(0)))
    if (anyFailure > 0) yield* rejectFirst(frame, chain, { p, fails, claim }, allocated)
    engine.release(...allocated)
  }
}

const holdsTrivially = ({ axis, extent, width }: Level<unknown>, claim: LevelProperty): boolean =>
  claim === 'full' ? isDense(axis) || extent === 0 : !hasWidth(axis) || width === 0

/** True if the number of stored coordinates, or a single position, determines whether a segment is full. */
const isDecidedByLength = ({ axis }: Level<unknown>): boolean => !isNonunique(axis) && !isPadded(axis)

/** True if the last position of a segment is padding. */
function hasPadding<C extends Column>(frame: Frame<C>, level: Level<C>, p: Expr): Expr {
  const width = frame.bindSize(level.width!)
  const last = add(mul(p, width), add(width, int(-1)))
  return eq(coordinateAt(frame, level, last), frame.bindSize(level.extent))
}

/** True if a segment of ascending coordinates has fewer than the extent. */
function isShort<C extends Column>(frame: Frame<C>, level: Level<C>, p: Expr): Expr {
  const { indptr, extent, width } = level
  if (width !== null) {
    if (width < extent) return eq(int(0), int(0))
    // Padding follows the elements.
    const last = add(mul(p, frame.bindSize(width)), add(frame.bindSize(extent), int(-1)))
    return eq(coordinateAt(frame, level, last), frame.bindSize(extent))
  }
  frame.tables.set('@indptr', indptr!)
  const length = sub(load('@indptr', [add(p, int(1))]), load('@indptr', [p]))
  return binary('ne', length, frame.bindSize(extent))
}

function lacksCoordinate<C extends Column>(
  frame: Frame<C>,
  level: Level<C>,
  p: Expr,
  c: Expr,
  allocated: C[],
): Expr {
  const { axis, indptr, indices, mask, starts, width } = level
  if (indptr) frame.tables.set('@indptr', indptr)
  const start = (parent: Expr): Expr =>
    indptr ? load('@indptr', [parent]) : mul(parent, frame.bindSize(width ?? level.extent, '@width'))
  const [lo, hi] = [start(p), start(add(p, int(1)))]
  const bits = mask ? frame.engine.bitsOf(level, indptr!.length - 1) : null
  if (bits) allocated.push(bits.parents, bits.coordinates)
  const stored = indices ? coordinateColumn(frame.engine, level, allocated) : bits?.coordinates
  if (!stored) {
    if (starts) frame.tables.set('@starts', starts)
    const first = starts ? load('@starts', [p]) : int(0)
    return binary('or', lt(c, first), ge(sub(c, first), sub(hi, lo)))
  }
  frame.tables.set('@stored', stored)
  // Coordinates ascend: if each is stored once, c is at index c as long as no smaller one is missing.
  const index = isNonunique(axis) ? search('lower', '@stored', lo, hi, c) : add(lo, c)
  return select(lt(index, hi), binary('ne', load('@stored', [index]), c), eq(int(0), int(0)))
}

interface Failure {
  readonly p: Expr
  readonly fails: Expr
  readonly claim: LevelProperty
}

/** Reports the first failing segment that is not under padding. @throws SptError `format/claim` */
function* rejectFirst<C extends Column>(
  frame: Frame<C>,
  chain: readonly Level<C>[],
  { p, fails, claim }: Failure,
  allocated: C[],
): Coroutine<void> {
  const { engine } = frame
  const ancestors = chain.slice(0, -1)
  const level = chain.at(-1)!
  const coordinates = new Map<string, Expr>()
  const positions = new Map<string, Expr>()
  if (ancestors.length > 0) computeAncestorCoordinates(frame, ancestors, p, coordinates, allocated, positions)
  const elementConditions = ancestors.flatMap((l) => {
    if (!hasWidth(l.axis)) return []
    const c = coordinates.get(l.axis.name)!
    return [
      isPadded(l.axis) ? isElement(l, positions.get(l.axis.name)!, frame) : lt(c, frame.bindSize(l.extent)),
    ]
  })
  const [entry = -1] = yield* engine.findFirst(frame, [all([fails, ...elementConditions])])
  if (entry < 0) return
  const names = ancestors.map((l) => l.axis.name)
  const [position, ...values] = yield* engine.valuesAt(
    frame,
    [p, ...names.map((n) => coordinates.get(n)!)],
    entry,
  )
  let problem = 'is claimed compact, but has padding'
  if (claim === 'full') {
    const coordinateFrame = new Frame(engine, level.extent, new Map())
    const [c] = yield* engine.findFirst(coordinateFrame, [
      lacksCoordinate(
        coordinateFrame,
        level,
        coordinateFrame.bindSize(position!),
        variable(ENTRY),
        allocated,
      ),
    ])
    problem = `is claimed full, but does not store the coordinate ${c}`
  }
  failWith(
    'format/claim',
    `axis ${level.axis.name}${names.length === 0 ? '' : ` at ${pointOf(names, values)}`} ${problem}`,
    {
      ...(level.axis.span && { span: level.axis.span }),
      expected: 'a tensor with the properties that the format states of the axis',
      hint: 'leave the claim out, or choose a format that fits the tensor',
    },
  )
}

/** Elements ascend, padding does not; the first of an empty segment, and greater padding, pass for elements. */
function isElement<C extends Column>(level: Level<C>, position: Expr, frame: Frame<C>): Expr {
  const current = coordinateAt(frame, level, position)
  const previous = coordinateAt(frame, level, add(position, int(-1)))
  const first = eq(mod(position, frame.bindSize(level.width!)), int(0))
  return select(first, eq(int(0), int(0)), lt(previous, current))
}
