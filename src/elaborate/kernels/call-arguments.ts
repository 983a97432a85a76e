/** Arguments of calls of kernels: inputs in order or by name, sizes and scalars by name, outputs on the left. */
import type * as Ast from '../../ast/nodes/nodes.ts'
import { walkSyntax } from '../../ast/nodes/walk.ts'
import { printExpr } from '../../ast/print/print.ts'
import { quantity } from '../../ast/print/quantity.ts'
import { type Dtype, isDtype, isFloat } from '../../ir/values/dtype.ts'
import { errorCount, report } from '../diagnostics.ts'

/** A buffer of the callee, and the name that a call passes. */
interface Passed<N extends Ast.Ident> {
  readonly own: Ast.BufferDecl
  readonly at: N
}

export interface Arguments {
  /** Expressions for sizes and scalars that are passed by name. */
  readonly values: Map<string, Ast.Expr>
  readonly inputs: readonly Passed<Ast.Name>[]
  readonly outputs: readonly Passed<Ast.Ident>[]
}

/** The buffers that a call passes, in order. */
export const inputsOf = ({ members }: Ast.Kernel): readonly Ast.BufferDecl[] =>
  members.filter((m) => m.kind === 'buffer').filter((b) => b.role.name === 'in' || b.role.name === 'inout')

/** A scalar argument in the type of the parameter. Reports elements of tensors, and types that lose values. */
function scalarArgument(
  value: Ast.Expr,
  { name, type }: Ast.Param,
  caller: readonly Ast.Param[],
): Ast.Expr | null {
  const isInteger = !isFloat(type.name as Dtype)
  const typeOf = (x: Ast.Expr): string | undefined =>
    x.kind === 'name' ? caller.find((p) => p.name.name === x.name)?.type.name : undefined
  let problem: string | undefined
  walkSyntax(value, (node) => {
    const x = node as Ast.Expr
    const own = typeOf(x)
    if (x.kind === 'access') problem ??= `an element of ${x.buffer.name}`
    else if (isInteger && x.kind === 'number' && (x.float || !Number.isInteger(x.value)))
      problem ??= `the fraction ${printExpr(x)}`
    else if (
      own &&
      own !== 'size' &&
      own !== type.name &&
      (isInteger ? isFloat(own as Dtype) : own === 'f64')
    )
      problem ??= `${printExpr(x)}, which is ${own}`
  })
  const isConverted = value.kind === 'call' && isDtype(value.fn.name)
  if (problem !== undefined && !(isConverted && !problem.startsWith('an element')))
    return report('check/call', value.span, {
      message: `${name.name} is ${type.name}, and the argument has ${problem}`,
      labels: [{ span: type.span, text: `${name.name} is declared here` }],
      expected: `an expression over sizes and scalars of type ${type.name}`,
    })
  if (value.kind === 'call' ? value.fn.name === type.name : typeOf(value) === type.name) return value
  if (value.kind === 'number' && !isInteger) return { ...value, float: true }
  return { kind: 'call', fn: { name: type.name, span: value.span }, args: [value], span: value.span }
}

/**
 * The arguments by parameter of the callee, or null after reported errors. An input that a copy of `repeat` declares may be
 * omitted if `isBuffer`: the caller has a buffer of the same name.
 */
export function argumentsOf(
  callee: Ast.Kernel,
  caller: readonly Ast.Param[],
  { args, results, span }: Pick<Ast.KernelCall, 'args' | 'results' | 'span'>,
  isBuffer: (name: string) => boolean,
): Arguments | null {
  const before = errorCount()
  const kernel = callee.name.name
  const buffers = callee.members.filter((m) => m.kind === 'buffer')
  const ins = inputsOf(callee)
  const outs = buffers.filter((b) => b.role.name === 'out')
  const values = new Map<string, Ast.Expr>()
  const inputs: { readonly own: Ast.BufferDecl; readonly at: Ast.Name }[] = []
  const form = `${kernel}(${[...ins.map((b) => b.name.name), ...callee.params.map((p) => `${p.name.name} = …`)].join(', ')})`
  const declaredAt = { labels: [{ span: callee.name.span, text: `kernel ${kernel} is declared here` }] }
  for (const [k, { name, value, span }] of args.entries()) {
    const param = name && callee.params.find((p) => p.name.name === name.name)
    const own = name ? ins.find((b) => b.name.name === name.name) : ins[k]
    const twice = own ? inputs.some((x) => x.own === own) : name !== null && values.has(name.name)
    const message = twice
      ? `${own?.name.name ?? name!.name} is passed twice`
      : !param && !own
        ? name
          ? `kernel ${kernel} has no input or size ${name.name}`
          : `kernel ${kernel} has ${quantity(ins.length, 'input')}`
        : own && value.kind !== 'name'
          ? `${own.name.name} of kernel ${kernel} is a buffer`
          : null
    if (message) report('check/call', span, { message, ...declaredAt, expected: form })
    else if (param) {
      const own = param.type.name === 'size' ? value : scalarArgument(value, param, caller)
      if (own) values.set(param.name.name, own)
    } else inputs.push({ own: own!, at: value as Ast.Name })
  }
  for (const own of ins) {
    const { name } = own.name
    if (/_\d+$/.test(name) && isBuffer(name) && !inputs.some((x) => x.own === own))
      inputs.push({ own, at: { kind: 'name', name, span } })
  }
  const missing = ins.filter((b) => !inputs.some((x) => x.own === b))
  if (errorCount() === before && missing.length > 0)
    report('check/call', span, {
      message: `${missing.map((b) => b.name.name).join(', ')} of kernel ${kernel} ${missing.length > 1 ? 'are' : 'is'} not passed`,
      ...declaredAt,
      expected: form,
    })
  if (results.length > outs.length) {
    const updated = ins.filter((b) => b.role.name === 'inout').map((b) => b.name.name)
    report('check/call', results[outs.length]!.span, {
      message:
        outs.length > 0 || updated.length === 0
          ? `kernel ${kernel} has ${quantity(outs.length, 'output')}`
          : `kernel ${kernel} has no output: it updates ${updated.join(', ')} in place`,
      ...declaredAt,
      expected:
        outs.length === 0
          ? `a call without \`=\`: \`call ${form}\``
          : outs.map((b) => b.name.name).join(', '),
    })
  }
  for (const [k, at] of results.entries())
    if (results.findIndex((x) => x.name === at.name) < k)
      report('check/call', at.span, {
        message: `${at.name} is listed twice`,
        ...declaredAt,
        expected: `a buffer for each output: ${outs.map((b) => b.name.name).join(', ')}`,
      })
  const outputs = results.map((at, k) => ({ own: outs[k]!, at }))
  return errorCount() > before ? null : { values, inputs, outputs }
}

/** Rejects a buffer that a callee updates and has under another name, too: the order of reads and updates would matter. */
export function checkUpdates(
  callee: Ast.Kernel,
  passed: ReadonlyMap<string, string>,
  span: Ast.Kernel['span'],
): void {
  for (const m of callee.members) {
    if (m.kind !== 'buffer' || m.role.name !== 'inout') continue
    const name = passed.get(m.name.name)
    const twice = [...passed].find(([own, other]) => other === name && own !== m.name.name)
    if (twice)
      report('check/call', span, {
        message: `${name} is passed for ${twice[0]} and for ${m.name.name}, which kernel ${callee.name.name} updates`,
        labels: [{ span: m.span, text: 'declared here' }],
        hint: `copy ${name} into a local buffer, and pass the copy`,
      })
  }
}
