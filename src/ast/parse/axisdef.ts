/** Definitions of axes: the parser reads `KIND(arguments) modifiers`, and `axis-kinds.ts` defines their meaning. */
import { failAt, type Span } from '../diagnostics/diagnostic.ts'
import { axisKindMeant } from '../diagnostics/foreign-names.ts'
import { AXES, type AxisDef, type AxisWord, type Flags } from '../nodes/axis-kinds.ts'
import type { Element, Expr, Ident } from '../nodes/nodes.ts'
import { quantity } from '../print/quantity.ts'
import { rejectRepeated } from './checks.ts'

interface Parts {
  readonly kind: Ident
  readonly args: readonly Expr[]
  readonly modifiers: readonly Ident[]
  readonly span: Span
}

export const AXIS_KINDS: readonly string[] = Object.keys(AXES)

export function axisDef(p: Parts): AxisDef {
  const kind = p.kind.name
  if (!isWord(kind)) {
    const hint = axisKindMeant(kind)
    failAt('parse/axis-kind', p.kind.span, {
      message: `there is no axis kind \`${kind}\``,
      lookup: { name: kind, candidates: AXIS_KINDS },
      ...(hint && { hint }),
    })
  }
  const takes = Object.entries<string>(AXES[kind].takes)
  const isList = takes.some(([, operandKind]) => operandKind === 'axes')
  const isRoot =
    takes.some(([, operandKind]) => operandKind === 'root?') && p.args.length === takes.length - 1
  if (isList ? p.args.length < 2 : p.args.length !== takes.length && !isRoot)
    failAt('parse/arity', p.span, {
      message: `\`${kind}\` does not take ${quantity(p.args.length, 'argument')}`,
      expected: `\`${AXES[kind].form}\``,
    })
  const operand = (operandKind: string, k: number): unknown => {
    const index = isRoot ? k - 1 : k
    if (operandKind === 'axes') return p.args.map((_, n) => axisName(p, n))
    if (operandKind === 'size') return p.args[index]!
    return index < 0
      ? null
      : operandKind === 'axis' || operandKind === 'buffer'
        ? axisName(p, index)
        : parentName(p)
  }
  const operands = takes.map(([field, operandKind], k) => [field, operand(operandKind, k)])
  return { kind, ...Object.fromEntries(operands), ...flagsOf(p, kind), span: p.span } as AxisDef
}

const isWord = (name: string): name is AxisWord => Object.hasOwn(AXES, name)

function flagsOf(p: Parts, kind: AxisWord): Flags | undefined {
  const sparse = 'sparse' in AXES[kind]
  const seen = new Set<string>()
  for (const m of p.modifiers) {
    if (!sparse)
      failAt('parse/modifier', m.span, {
        message: `a \`${p.kind.name}\` axis cannot be \`${m.name}\``,
        hint: '`unordered` and `nonunique` are properties of the stored coordinates of sparse axes',
      })
    if (seen.has(m.name)) rejectRepeated(m.name, 'written', m.span)
    seen.add(m.name)
  }
  return sparse ? { ordered: !seen.has('unordered'), unique: !seen.has('nonunique') } : undefined
}

/** An argument that must be a name: the parent of an axis, a member, a buffer. */
function axisName(p: Parts, k: number): Ident {
  const e = p.args[k]!
  if (e.kind === 'name') return { name: e.name, span: e.span }
  failAt('parse/unexpected', e.span, {
    message: `argument ${k + 1} of \`${p.kind.name}\` is a name`,
    expected: `\`${AXES[p.kind.name as AxisWord].form}\``,
  })
}

/** A parent's name, which may be an element of a list: `o[k]`. */
function parentName(p: Parts): Element {
  const e = p.args[0]!
  const [index, second] = e.kind === 'access' ? e.index : []
  return e.kind === 'access' && index && !second
    ? { name: e.buffer.name, span: e.span, index }
    : axisName(p, 0)
}
