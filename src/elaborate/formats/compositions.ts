/** Elaboration of compositions: the format of each part of a tensor. */
import { type Span, spanAt } from '../../ast/diagnostics/span.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { type Expr, variable } from '../../ir/expressions/expr.ts'
import type { AnyFormat, FormatUse, PartRule } from '../../ir/formats/format.ts'
import { anotherMeaning, errorCount, repeatedIn, report } from '../diagnostics.ts'
import { condition } from '../expressions/expressions.ts'
import { constantPlace, namesAt, numberAt } from './format-names.ts'
import type { FormatScope, ListAndSetParams, Numbers } from './format-place.ts'
import { unknownDimension } from './format-sorts.ts'
import { checkArguments, type FindFormat, forOrder, givenArgument, Queries } from './format-uses.ts'

export interface RuleScope {
  /** A description for messages, such as `format buckets`. */
  readonly what: string
  readonly over: readonly string[]
  /** Parameters, and the names of enclosing rules. */
  readonly values: Numbers
  readonly given: ListAndSetParams
  readonly find: FindFormat
}

export function elaborateRules(rules: readonly Ast.Rule[], scope: RuleScope): readonly PartRule[] | null {
  const before = errorCount()
  const parts = rules.flatMap((r) => elaborateRule(r, scope) ?? [])
  const named = rules.flatMap((r) => (r.kind === 'part' && r.name ? [r.name] : []))
  for (const { name, first } of repeatedIn(named))
    report('check/duplicate', name.span, {
      message: `two parts are called ${name.name}`,
      labels: [{ span: first.span, text: 'the first' }],
      hint: `rename a part ${name.name}`,
    })
  const rest = parts.slice(0, -1).findIndex(takesAll)
  if (errorCount() === before && rest >= 0)
    report('check/rest-not-last', headOf(rules[rest]!), {
      message: 'this part takes every element, so later parts would be empty',
      labels: [{ span: headOf(rules[rest + 1]!), text: 'the next part' }],
      expected: 'a condition on every part but the last: `where (…)`',
    })
  return errorCount() > before ? null : parts
}

const headOf = (r: Ast.Rule): Span =>
  r.kind === 'part' ? r.span : spanAt(r.span, r.span.start, r.span.start + r.kind.length)

const takesAll = (r: PartRule): boolean =>
  r.kind !== 'part' ||
  (r.where === null && (r.use.format.kind === 'composition' || r.use.format.where === null))

function elaborateRule(r: Ast.Rule, scope: RuleScope): PartRule | null {
  switch (r.kind) {
    case 'part':
      return elaboratePart(r, scope)
    case 'partition':
      return partition(r, scope)
    case 'bucket':
      return bucket(r, scope)
  }
}

function elaboratePart(r: Ast.PartRule, scope: RuleScope): PartRule | null {
  const use = elaborateUse(r.use, scope)
  const queries = new Queries(new Set([...scope.values.keys(), ...scope.given.kinds.keys(), ...scope.over]))
  const where = r.where && partCondition(r.where, scope, queries)
  if (!use || (r.where && !where)) return null
  return { kind: 'part', name: r.name?.name ?? null, use, queries: queries.list, where, span: r.span }
}

function partCondition(e: Ast.Expr, scope: RuleScope, queries: Queries): Expr | null {
  const { over } = scope
  const place: FormatScope = {
    what: `a condition of ${scope.what} over (${over.join(', ')})`,
    values: new Map([
      ...scope.values,
      ...over.map((d) => [d, { name: d, dtype: 'index' as const, coordinate: true as const }] as const),
    ]),
    given: scope.given,
    size: (dim) => (over.includes(dim) ? `size(${dim})` : undefined),
    sorts: [],
    loads: true,
    dims: over,
    queries,
  }
  return condition(e, namesAt(place))
}

/** A format with arguments for tensors of as many dimensions as the composition has. */
function elaborateUse(u: Ast.FormatUse, scope: RuleScope): FormatUse | null {
  const named = scope.find(u.format)
  const format = named && forOrder(named, scope.over.length)
  if (!format) return null
  if (format.over.length !== scope.over.length)
    return report('check/format-over', u.format.span, {
      message: `format ${format.name} is over (${format.over.join(', ')}), and ${scope.what} over (${scope.over.join(', ')})`,
      expected: 'a format over as many dimensions',
    })
  if (!checkArguments(`format ${format.name}`, u.args.length, format.params, u.span)) return null
  const args = u.args.map((e, k) => argument(e, format, k, scope))
  return args.some((a) => a === null) ? null : { format, args: args as Expr[], span: u.span }
}

function argument(e: Ast.Expr, format: AnyFormat, k: number, scope: RuleScope): Expr | null {
  const { given } = scope
  const p = format.params[k]!
  const what = `${p.name} of format ${format.name}`
  if (p.kind === 'integer' || p.kind === 'real')
    return numberAt(constantPlace(scope.values, given, `an argument in ${scope.what}`), e, p.kind, what)
  const name = givenArgument(e, p, format)
  if (name === null) return null
  if (given.kinds.get(name) === p.kind || given.declare?.(name, p.kind, e.span))
    return variable(name, 'index', e.span)
  return report('check/not-given', e.span, {
    message: `${what} is a ${p.kind}, and ${name} is none here`,
    expected: `a parameter \`${name}: ${p.kind}\` of ${scope.what}`,
    lookup: { name, candidates: [...given.kinds].flatMap(([n, kind]) => (kind === p.kind ? [n] : [])) },
  })
}

/** `scope` with a name whose value differs from child to child. */
function inside(scope: RuleScope, name: Ast.Ident | null): RuleScope | null {
  if (!name) return scope
  const taken =
    scope.values.has(name.name) || scope.given.kinds.has(name.name) || scope.over.includes(name.name)
  if (taken) return anotherMeaning(name, scope.what, 'choose another name')
  const values = new Map([...scope.values, [name.name, { name: name.name, dtype: 'index' as const }]])
  return { ...scope, values }
}

const constants = (scope: RuleScope, what: string): FormatScope =>
  constantPlace(scope.values, scope.given, what)

function positive(e: Expr | null, span: Span, what: string): Expr | null {
  if (e?.kind !== 'const' || e.value >= 1) return e
  return report('check/positive', span, { message: `${what} is ${e.value}`, expected: '1 or more' })
}

function partition(r: Ast.PartitionRule, scope: RuleScope): PartRule | null {
  const dim = scope.over.includes(r.dim.name) || unknownDimension(r.dim, scope.over, scope)
  const number = numberAt(constants(scope, 'the number of ranges'), r.into, 'integer', 'the number of ranges')
  const into = positive(number, r.into.span, 'the number of ranges')
  const within = inside(scope, r.as)
  const parts = within && elaborateRules(r.rules, within)
  if (!dim || !into || !parts) return null
  return { kind: 'partition', dim: r.dim.name, into, as: r.as?.name ?? null, parts, span: r.span }
}

function bucket(r: Ast.BucketRule, scope: RuleScope): PartRule | null {
  const { over } = scope
  const dims = r.dims.map((d) => d.name)
  const good = r.dims.map((d) => over.includes(d.name) || unknownDimension(d, over, scope))
  const twice = r.dims.find((d, k) => dims.indexOf(d.name) !== k)
  if (twice)
    report('check/bucket-dimensions', twice.span, {
      message: `${twice.name} is named twice`,
      expected: 'different dimensions',
    })
  else if (good.every(Boolean) && dims.length === over.length)
    report('check/bucket-dimensions', r.dims[0]!.span, {
      message: `a bucket counts the elements stored with the same ${dims.join(', ')}: here always a single coordinate`,
      expected: `a proper subset of ${over.join(', ')}`,
    })
  const widths = r.widths.map((w) => width(w, scope))
  checkAscending(r, widths)
  const within = inside(scope, r.as)
  const parts = within && elaborateRules(r.rules, within)
  if (!parts || widths.some((w) => w === null) || !good.every(Boolean)) return null
  return {
    kind: 'bucket',
    dims,
    widths: widths as Width[],
    as: r.as.name,
    split: r.split,
    parts,
    span: r.span,
  }
}

type Width = Extract<PartRule, { kind: 'bucket' }>['widths'][number]

function width(w: Ast.Width, scope: RuleScope): Width | null {
  const place = constants(scope, 'a width')
  const value = positive(numberAt(place, w.value, 'integer', 'a width'), w.span, 'a width')
  const power = w.power && numberAt(place, w.power, 'integer', 'an exponent')
  if (!value || (w.power && !power)) return null
  if (power?.kind === 'const' && power.value < 0)
    return report('check/positive', w.span, {
      message: `the exponent is ${power.value}`,
      expected: '0 or more',
    })
  return { value, power, doubling: w.doubling }
}

/** Reports constant widths that do not ascend. Other widths are checked when arguments are given. */
function checkAscending(r: Ast.BucketRule, widths: readonly (Width | null)[]): void {
  const known = widths.map((w) =>
    w?.value.kind !== 'const'
      ? undefined
      : w.power === null
        ? w.value.value
        : w.power.kind === 'const'
          ? w.value.value ** w.power.value
          : undefined,
  )
  const k = known.findIndex((v, n) => n > 0 && v !== undefined && v <= (known[n - 1] ?? 0))
  if (k < 0) return
  report('check/bucket-widths', r.widths[k]!.span, {
    message: `the width ${known[k]} comes after ${known[k - 1]}`,
    expected: 'ascending widths',
  })
}
