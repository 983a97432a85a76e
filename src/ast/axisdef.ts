/** What each axis kind takes: the parser reads `KIND(arguments) modifiers` and this table makes sense of it. */
import { refuseTwice } from './checks.ts'
import { fail, type Span } from './diagnostic.ts'
import type { AxisDef, Element, Expr, Ident } from './nodes.ts'

interface Parts {
  readonly kind: Ident
  readonly args: readonly Expr[]
  readonly modifiers: readonly Ident[]
  readonly span: Span
}

interface Flags {
  readonly ordered: boolean
  readonly unique: boolean
}

interface Rule {
  readonly form: string
  readonly min: number
  readonly max: number
  readonly sparse: boolean
  readonly make: (p: Parts, flags: Flags) => AxisDef
}

const RULES: Readonly<Record<AxisDef['kind'], Rule>> = {
  dense_fixed: {
    form: 'dense_fixed(extent)` or, under a parent, `dense_fixed(parent, extent)',
    min: 1,
    max: 2,
    sparse: false,
    make: (p) => ({
      kind: 'dense_fixed',
      parent: p.args.length === 2 ? parentName(p) : null,
      extent: p.args.at(-1)!,
      span: p.span,
    }),
  },
  dense_variable: {
    form: 'dense_variable(parent, max)',
    min: 2,
    max: 2,
    sparse: false,
    make: (p) => ({ kind: 'dense_variable', parent: parentName(p), extent: p.args[1]!, span: p.span }),
  },
  sparse_fixed: {
    form: 'sparse_fixed(parent, extent, width)',
    min: 3,
    max: 3,
    sparse: true,
    make: (p, flags) => ({
      kind: 'sparse_fixed',
      parent: parentName(p),
      extent: p.args[1]!,
      width: p.args[2]!,
      ...flags,
      span: p.span,
    }),
  },
  sparse_variable: {
    form: 'sparse_variable(parent, extent)` or, as a root, `sparse_variable(extent)',
    min: 1,
    max: 2,
    sparse: true,
    make: (p, flags) => ({
      kind: 'sparse_variable',
      parent: p.args.length === 2 ? parentName(p) : null,
      extent: p.args.at(-1)!,
      ...flags,
      span: p.span,
    }),
  },
  bitmap: {
    form: 'bitmap(parent, extent)',
    min: 2,
    max: 2,
    sparse: false,
    make: (p) => ({ kind: 'bitmap', parent: parentName(p), extent: p.args[1]!, span: p.span }),
  },
  fused: {
    form: 'fused(root, child, …)',
    min: 2,
    max: Number.POSITIVE_INFINITY,
    sparse: false,
    make: (p) => ({ kind: 'fused', members: p.args.map((_, k) => axisName(p, k)), span: p.span }),
  },
  attached: {
    form: 'attached(base, parent)',
    min: 2,
    max: 2,
    sparse: false,
    make: (p) => ({ kind: 'attached', base: axisName(p, 0), parent: axisName(p, 1), span: p.span }),
  },
  gathered: {
    form: 'gathered(base, L)',
    min: 2,
    max: 2,
    sparse: false,
    make: (p) => ({ kind: 'gathered', base: axisName(p, 0), buffer: axisName(p, 1), span: p.span }),
  },
}

/** Words for kinds of axes. */
export const AXIS_KINDS: readonly string[] = Object.keys(RULES)

export function axisDef(p: Parts): AxisDef {
  const rule = Object.hasOwn(RULES, p.kind.name) ? RULES[p.kind.name as AxisDef['kind']] : undefined
  if (!rule)
    fail({
      code: 'parse/axis-kind',
      message: `there is no axis kind \`${p.kind.name}\``,
      span: p.kind.span,
      lookup: { name: p.kind.name, candidates: AXIS_KINDS },
    })
  if (p.args.length < rule.min || p.args.length > rule.max)
    fail({
      code: 'parse/arity',
      message: `\`${p.kind.name}\` does not take ${p.args.length} argument${p.args.length === 1 ? '' : 's'}`,
      span: p.span,
      expected: `\`${rule.form}\``,
    })
  return rule.make(p, flagsOf(p, rule))
}

function flagsOf(p: Parts, rule: Rule): Flags {
  const seen = new Set<string>()
  for (const m of p.modifiers) {
    if (!rule.sparse)
      fail({
        code: 'parse/modifier',
        message: `a \`${p.kind.name}\` axis cannot be \`${m.name}\``,
        span: m.span,
        hint: '`unordered` and `nonunique` say how the stored coordinates of sparse axes may lie',
      })
    if (seen.has(m.name)) refuseTwice(m.name, 'written', m.span)
    seen.add(m.name)
  }
  return { ordered: !seen.has('unordered'), unique: !seen.has('nonunique') }
}

/** An argument that must be a name: the parent of an axis, a member, a buffer. */
function axisName(p: Parts, k: number): Ident {
  const e = p.args[k]!
  if (e.kind === 'name') return { name: e.name, span: e.span }
  fail({
    code: 'parse/unexpected',
    message: `argument ${k + 1} of \`${p.kind.name}\` is a name`,
    span: e.span,
    expected: `\`${RULES[p.kind.name as AxisDef['kind']].form}\``,
  })
}

/** The same, where it may be one of a list: `o[k]`. */
function parentName(p: Parts): Element {
  const e = p.args[0]!
  const [index, more] = e.kind === 'access' ? e.index : []
  return e.kind === 'access' && index && !more ? { name: e.buffer.name, span: e.span, index } : axisName(p, 0)
}
