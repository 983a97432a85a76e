/** Items in the body of a format, and the checks that combine them into a description or a composition. */
import { failAt } from '../diagnostics/diagnostic.ts'
import { type Span, spanAt } from '../diagnostics/span.ts'
import { levelProperties } from '../nodes/axis-kinds.ts'
import type * as ast from '../nodes/nodes.ts'
import { AXIS_CLAIMS, FORMAT_PARAM_TYPES } from '../nodes/nodes.ts'
import { rejectRepeated } from './checks.ts'

export type FormatItem = ast.AxisDecl | ast.CoordMap | ast.Sort | ast.Mask | ast.Holds | ast.Rule

const isRule = (i: FormatItem): i is ast.Rule =>
  i.kind === 'part' || i.kind === 'partition' || i.kind === 'bucket'

export function formatBody(
  items: readonly FormatItem[],
  format: ast.Ident,
): ast.Description | ast.Composition {
  const rules = items.filter(isRule)
  const otherItem = items.find((i) => !isRule(i))
  const [rule] = rules
  if (rule && otherItem)
    failAt('parse/mixed-format', keywordSpan(otherItem), {
      message: `format \`${format.name}\` has both parts and axes with maps`,
      labels: [{ span: keywordSpan(rule), text: 'it is composed of parts here' }],
      expected: 'either parts, or axes with `map` and `inverse`',
      hint: 'describe the storage in a separate format, and name the format in a `part`',
    })
  if (rule) return { kind: 'composition', rules }
  const ofKind = <K extends FormatItem['kind']>(kind: K) =>
    items.filter((i): i is Extract<FormatItem, { readonly kind: K }> => i.kind === kind)
  /** The only item of a kind. @throws SptError if it is given twice */
  const only = <K extends FormatItem['kind']>(kind: K) => {
    const [first, second] = ofKind(kind)
    if (second) rejectRepeated(kind, 'given', second.span, kind === 'where' ? COMBINED : undefined)
    return first ?? null
  }
  const mapOf = (kind: 'map' | 'inverse', expected: string): ast.CoordMap =>
    (only(kind) as ast.CoordMap | null) ??
    failAt('parse/missing', format.span, {
      message: `format \`${format.name}\` has no \`${kind}\``,
      expected: `\`${kind} ${expected}`,
      ...(items.length === 0 && { hint: 'or parts: `part NAME = FORMAT(…) where (…)`' }),
    })
  return {
    kind: 'description',
    sorts: ofKind('sort'),
    axes: ofKind('axis'),
    map: mapOf('map', '(i, …) -> (…)`, from old coordinates to new'),
    inverse: mapOf('inverse', '(io, …) -> (…)`, from new coordinates to old'),
    mask: only('mask'),
    where: only('where'),
  }
}

const COMBINED = 'combine the conditions with `and`'

/** The span of the item's first word, so that a diagnostic does not mark a whole block. */
const keywordSpan = ({ kind, span }: FormatItem): Span => spanAt(span, span.start, span.start + kind.length)

export function formatParam(
  name: ast.Ident,
  type: ast.Ident | null,
  value: ast.Expr | null,
  span: Span,
): ast.FormatParam {
  if (!type) return { name, type: 'integer', default: value, span }
  const paramType = FORMAT_PARAM_TYPES.find((t) => t === type.name)
  if (!paramType)
    failAt('parse/type', type.span, {
      message: `a parameter of a format cannot be \`${type.name}\``,
      expected: '`size`, `real`, `list` or `set`; the default type is an integer',
      lookup: { name: type.name, candidates: FORMAT_PARAM_TYPES },
    })
  if (value && paramType !== 'real')
    failAt('parse/default', value.span, {
      message: `a parameter of type \`${paramType}\` has no default`,
      hint:
        paramType === 'size'
          ? 'a `size` that is not given is measured; omit `: size` to declare an integer with a default'
          : 'an omitted argument takes the parameter’s name in the data',
    })
  return { name, type: paramType, default: value, span }
}

/** The claims among the modifiers of an axis. @throws SptError if one is written twice */
export function axisClaims(words: readonly ast.Ident[]): readonly ast.AxisClaim[] {
  const claims = words.flatMap(({ name, span }) => {
    const claimName = AXIS_CLAIMS.find((c) => c === name)
    return claimName ? [{ name: claimName, span }] : []
  })
  const repeated = claims.find((c, k) => claims.findIndex((d) => d.name === c.name) !== k)
  if (repeated) rejectRepeated(repeated.name, 'written', repeated.span)
  return claims
}

/** Checks that a block has rules: elements that no part takes would be lost. @throws SptError `parse/missing` */
export function requireRules(rule: ast.PartitionRule | ast.BucketRule): void {
  if (rule.rules.length === 0)
    failAt('parse/missing', keywordSpan(rule), {
      message: `this \`${rule.kind}\` has no parts`,
      expected: '`part FORMAT(…)`, or a further `partition` or `bucket`',
    })
}

/** Checks that an axis with `padded with` has positions of fixed width. @throws SptError `parse/padding` */
export function checkPadded(def: ast.AxisDef, claims: readonly ast.AxisClaim[], span: Span): void {
  if (levelProperties(def.kind)?.positions !== 'width')
    failAt('parse/padding', span, {
      message: `a \`${def.kind}\` axis has no padding`,
      expected: '`sparse_fixed(parent, extent, width)`',
    })
  const [claim] = claims
  if (claim)
    failAt('parse/padding', claim.span, {
      message: `padding with a coordinate cannot be distinguished from elements, so \`${claim.name}\` cannot be checked`,
      labels: [{ span, text: 'the coordinate of padding' }],
      hint: `remove the coordinate of padding, or \`${claim.name}\``,
    })
}

/** Checks that an axis with `packed` stores coordinates. @throws SptError `parse/packed` */
export function checkPacked(def: ast.AxisDef, span: Span): void {
  if (levelProperties(def.kind)?.arrays.includes('indices')) return
  failAt('parse/packed', span, {
    message: `a \`${def.kind}\` axis stores no coordinates to pack`,
    expected: '`sparse_fixed` or `sparse_variable`',
  })
}

/** Checks an axis of a kernel: lists, and padding with a coordinate, are not allowed there. @throws SptError */
export function checkKernelAxis(a: ast.AxisDecl): void {
  if (a.padding)
    failAt('parse/padding', a.padding.span, {
      message: 'the padding of a kernel’s axes has no coordinate',
      hint: 'declare this axis in a format, and store the tensor in that format',
    })
  const parent = 'parent' in a.def ? a.def.parent : null
  const part = a.each ?? (a.name.index && a.name) ?? (parent && 'index' in parent ? parent : null)
  if (part)
    failAt('parse/list', part.span, {
      message: 'a kernel has no lists of axes',
      expected: 'a name',
      hint: 'lists are for formats of any order: `format NAME over (d...)`',
    })
}
