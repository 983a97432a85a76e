/** Memories and instructions with parameters: a declaration has an instance for each list of arguments. */
import { type Span, spanAt } from '../../ast/diagnostics/span.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { type AnyNode, mapSyntax } from '../../ast/nodes/walk.ts'
import { appliedName } from '../../ast/print/message-text.ts'
import { DTYPE_BYTES, type Dtype, isDtype, isWord } from '../../ir/values/dtype.ts'
import { anotherMeaning, collectErrors, errorCount, report, reportAll, throwErrors } from '../diagnostics.ts'
import { condition, elaborateExpr, type Names, noNames } from '../expressions/expressions.ts'
import { checkArguments } from '../formats/format-uses.ts'
import { WORDS } from './templates.ts'

export type Argument = number | Dtype
export type Values = ReadonlyMap<string, Argument>

interface FamilyParam {
  readonly name: string
  /** The types that the parameter accepts; null for an integer parameter. */
  readonly types: readonly Dtype[] | null
}

/** The instances of a declaration; a declaration without parameters has one instance. */
export interface Family<T> {
  readonly name: string
  readonly span: Span
  readonly params: readonly FamilyParam[]
  /** The instances for the declaration's examples; without parameters, the only instance. */
  readonly examples: readonly T[]
  /** The instance for these arguments, which fit the parameters. */
  tryInstantiate(args: readonly Argument[], use?: Span): T | null
  /** The instance for these arguments. @throws SptError `check/…` */
  instantiate(args: readonly Argument[], use?: Span): T
}

/** The family of a declaration. `make` elaborates an instance, in whose text the arguments replace the parameters. */
export function familyOf<D extends Ast.Memory | Ast.Instr, T>(
  decl: D,
  make: (instance: D, values: Values) => T | null,
): Family<T> | null {
  const before = errorCount()
  const { name } = decl.name
  const params = decl.params.map(
    (p): FamilyParam => ({ name: p.name.name, types: p.types?.map((t) => t.name) ?? null }),
  )
  checkNames(decl)
  if (errorCount() > before) return null
  const made = new Map<string, T>()
  const instance = (args: readonly Argument[], use: Span | undefined): T | null => {
    const values = new Map(params.map((p, k) => [p.name, args[k]!]))
    const text = appliedName(name, args)
    const known = made.get(text)
    if (known !== undefined) return known
    const own = { ...filled(decl, values), name: { ...decl.name, name: text } }
    if (!admitted(own, use)) return null
    const result = make(own, values)
    if (result !== null) made.set(text, result)
    return result
  }
  const at: Family<T>['tryInstantiate'] = (args, use) => {
    const { result, errors } = collectErrors(() => instance(args, use))
    const label = use && params.length > 0 ? { span: use, text: 'used here' } : undefined
    for (const d of errors)
      reportAll(label && d.span !== use ? { ...d, labels: [...(d.labels ?? []), label] } : d)
    return result
  }
  const examples: T[] = []
  for (const [args, span] of examplesOf(decl, params)) {
    const result = at(args, span)
    if (result === null) return null
    examples.push(result)
  }
  return errorCount() > before
    ? null
    : {
        name,
        span: decl.span,
        params,
        examples,
        tryInstantiate: at,
        instantiate: (args, use) => throwErrors(() => at(args, use))!,
      }
}

function checkNames(decl: Ast.Memory | Ast.Instr): void {
  const taken = new Set<string>(namesIn(decl))
  for (const { name } of decl.params) {
    if (taken.has(name.name) || isDtype(name.name))
      anotherMeaning(name, `${decl.kind} ${decl.name.name}`, 'choose another name for the parameter')
    taken.add(name.name)
  }
  const [first] = decl.items.filter((x) => x.kind === 'limit' || x.kind === 'examples')
  if (first && decl.params.length === 0)
    report('check/no-parameters', first.span, {
      message: `${decl.kind} ${decl.name.name} has no parameters`,
      expected: `\`${decl.kind} ${decl.name.name}(n)\`, or no \`${first.kind === 'limit' ? 'require' : 'examples'}\``,
    })
  if (decl.kind === 'instr' && decl.params.length > 0 && !decl.items.some((x) => x.kind === 'examples'))
    report('check/instr-examples', decl.name.span, {
      message: `instruction ${decl.name.name} has parameters and no examples`,
      expected: '`examples (…)`: the arguments for checks and tests',
    })
}

function namesIn(decl: Ast.Memory | Ast.Instr): readonly string[] {
  if (decl.kind === 'memory')
    return [
      'value',
      ...decl.items.flatMap((x) =>
        x.kind === 'element'
          ? [x.lane.name, x.slot.name]
          : x.kind === 'address'
            ? x.from.map((f) => f.name)
            : [],
      ),
    ]
  const iterators = decl.items.flatMap((x) => (x.kind === 'iterate' ? x.iters.map((i) => i.name.name) : []))
  return [...WORDS, ...decl.operands.map((o) => o.name.name), ...iterators]
}

function examplesOf(
  decl: Ast.Memory | Ast.Instr,
  params: readonly FamilyParam[],
): readonly (readonly [readonly Argument[], Span | undefined])[] {
  if (params.length === 0) return [[[], undefined]]
  const uses = decl.items.flatMap((x) =>
    x.kind === 'examples'
      ? x.of.map((args) => ({ name: decl.name, args, span: around(args) ?? x.span }))
      : [],
  )
  return uses.flatMap((use) => {
    const args = constantArguments(use, { name: decl.name.name, params })
    return args ? [[args, use.span] as const] : []
  })
}

function around(list: readonly Ast.Expr[]): Span | undefined {
  const [first, last] = [list[0], list.at(-1)]
  return first && last && spanAt(first.span, first.span.start, last.span.end)
}

/**
 * The arguments of a use. An argument is null if `integer` returns null for it, or if it is a type that `isOpenType`
 * does not know yet.
 */
export function instanceArguments(
  use: Ast.Instance,
  family: Pick<Family<unknown>, 'name' | 'params'>,
  integer: (e: Ast.Expr) => number | null,
  isOpenType: (name: string) => boolean = () => false,
): readonly (Argument | null)[] | null {
  const { name, params } = family
  const taken = params.map((p) => ({ name: p.name, default: null }))
  if (!checkArguments(name, use.args.length, taken, use.span)) return null
  const before = errorCount()
  const args = use.args.map((e, k): Argument | null => {
    const { types, name: param } = params[k]!
    if (!types) return integer(e)
    if (e.kind === 'name' && isOpenType(e.name)) return null
    const found = e.kind === 'name' ? types.find((t) => t === e.name) : undefined
    return (
      found ??
      report('check/argument-type', e.span, {
        message: `${param} of ${name} is a type`,
        expected: types.join(' or '),
      })
    )
  })
  return errorCount() > before ? null : args
}

/** The arguments of a use, whose integers must be constants. */
export function constantArguments(
  use: Ast.Instance,
  family: Pick<Family<unknown>, 'name' | 'params'>,
): readonly Argument[] | null {
  const args = instanceArguments(use, family, constantInteger)
  return args?.every((a) => a !== null) ? args : null
}

const NONE: Names = { ...noNames(() => null), real: 'f64' }

function constantInteger(e: Ast.Expr): number | null {
  const t = elaborateExpr(e, NONE)
  if (t?.expr.kind === 'const' && isWord(t.expr.dtype)) return t.expr.value
  return report('check/constant', e.span, {
    message: 'this is not a constant integer',
    expected: 'a number, or an expression of numbers',
  })
}

function admitted(instance: Ast.Memory | Ast.Instr, use: Span | undefined): boolean {
  for (const x of instance.items) {
    if (x.kind !== 'limit') continue
    const before = errorCount()
    const cond = condition(x.cond, NONE)
    if (cond?.kind !== 'const') {
      if (errorCount() > before) return false
      report('check/constant', x.cond.span, {
        message: 'this does not follow from the parameters',
        expected: `a condition over ${instance.params.map((p) => p.name.name).join(', ')}`,
      })
      return false
    }
    if (cond.value) continue
    report('check/instance', use ?? x.cond.span, {
      message: `there is no ${instance.name.name}`,
      ...(use && { labels: [{ span: x.cond.span, text: 'this does not hold' }] }),
      expected: 'arguments for which each `require` of the declaration holds',
    })
    return false
  }
  return true
}

/** A node that may be a parameter, or the size of a type. */
interface Named extends Ast.Node {
  readonly kind: Ast.Expr['kind']
  readonly name: string
  readonly fn: Ast.Ident
  readonly args: readonly Ast.Expr[]
}

/** Fields without parameters. Texts stay the same objects, because their parsed parts are cached for all instances. */
const KEPT: ReadonlySet<string> = new Set(['span', 'params', 'code', 'trivia'])

/** Fields with a type: `S: t[8]`, `accumulate t`, `t(e)`, `extends scale<t>`. */
export const TYPED: ReadonlySet<string> = new Set(['type', 'accumulate', 'fn', 'types'])

/**
 * A part of a declaration with arguments in place of parameters; `bytes(t)` becomes the size of a type. The arguments
 * of definitions are expressions.
 */
export function filled<T>(part: T, values: ReadonlyMap<string, Argument | Ast.Expr>): T {
  if (values.size === 0) return part
  const replace = (x: AnyNode, key: string): unknown => {
    const node = x as Partial<Named>
    const value = values.get(String(node.name))
    if (typeof value === 'object' && node.kind === 'name') return value
    if (typeof value === 'string' && (node.kind === 'name' || TYPED.has(key))) return { ...node, name: value }
    if (typeof value === 'number' && node.kind === 'name') return number(value, node.span!)
    const [type] = node.kind === 'call' && node.fn?.name === 'bytes' ? (node.args ?? []) : []
    const named = type?.kind === 'name' ? (values.get(type.name) ?? type.name) : undefined
    return typeof named === 'string' && isDtype(named) ? number(DTYPE_BYTES[named], node.span!) : undefined
  }
  return mapSyntax(part, replace, KEPT)
}

/** A number as an i32 expression: its quotients round down, while inexact quotients of literals are errors. */
function number(value: number, span: Span): Ast.Call {
  const literal: Ast.NumberLit = { kind: 'number', value, float: false, span }
  return { kind: 'call', fn: { name: 'i32', span }, args: [literal], span }
}
