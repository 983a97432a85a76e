/**
 * Stage I as `.spt` text, the monoids it uses included. Reading it back gives an equivalent kernel; what
 * formats replaced (`reformats`) is not part of the text.
 */
import { unreachable } from '../../ast/diagnostics/diagnostic.ts'
import { type Axis, hasIndices, hasWidth, keepsDuplicates, operandsOfAxis } from '../coordinates/axis.ts'
import { kernelIdentifier } from '../coordinates/derived-names.ts'
import { roundsText } from '../coordinates/rounds.ts'
import type { Buffer1, If1, Iteration, Kernel1, Stmt1 } from '../coordinates/stage1.ts'
import { declaredMonoids } from '../coordinates/stage1-tree.ts'
import type { Expr } from '../expressions/expr.ts'
import type { Monoid } from '../values/monoid.ts'
import { exprPrinter, typedConstant } from './print-expr.ts'

/**
 * Prints one expression of Stage I with the fewest parentheses; `level` is the binding strength of its surroundings.
 */
export const printExpr1 = exprPrinter(typedConstant)

function printAxis(a: Axis): string {
  const flags =
    'unique' in a ? `${a.ordered ? '' : ' unordered'}${keepsDuplicates(a) ? ' nonunique' : ''}` : ''
  const padding = hasWidth(a) ? a.padding : undefined
  const packed = hasIndices(a) && a.packed ? ` packed ${printExpr1(a.packed)}` : ''
  const modifiers = `${flags}${padding ? ` padded with ${padding === 'last' ? padding : printExpr1(padding)}` : ''}${packed}`
  const args = operandsOfAxis(a).flatMap(([, of, x]) =>
    of === 'size' ? [printExpr1(x as Expr)] : x === null ? [] : (x as string | readonly string[]),
  )
  return `axis ${a.name} = ${a.kind}(${args.join(', ')})${modifiers}`
}

function printBuffer1(b: Buffer1): string {
  // A fill value takes the type of its buffer.
  const value = typedConstant({ value: b.fill, dtype: b.dtype }, b.dtype)
  const fill = b.fill === 0 ? '' : ` fill ${value}`
  const accumulate = b.accumulate === b.dtype ? '' : ` accumulate ${b.accumulate}`
  return `buffer ${b.name}: ${b.dtype}[${b.axes.join(', ')}] ${b.role}${fill}${accumulate}`
}

const tuple = (xs: readonly string[]): string => (xs.length === 1 ? xs[0]! : `(${xs.join(', ')})`)

function printMonoid(m: Monoid): string {
  const rule = m.derivative
  const sideName = (vars: Monoid['left']): string => vars[0]!.name.split('.')[0]!
  const fields = m.fields.map((f) => `${f.name}: ${f.dtype}`).join(', ')
  const values = (xs: readonly Expr[]): string => tuple(xs.map((e, k) => printExpr1(e, m.fields[k]!.dtype)))
  return [
    `monoid ${m.name}(${fields}) {`,
    `  identity ${values(m.identity)}`,
    `  combine (${sideName(m.left)}, ${sideName(m.right)}) = ${values(m.result)}`,
    ...(rule
      ? [
          `  derivative (${[rule.operand, rule.result, rule.adjoint].map(sideName).join(', ')}) = ${values(rule.values)}`,
        ]
      : []),
    '}',
  ].join('\n')
}

/** The first line of an iteration, up to its brace. */
function printIterationHead(s: Iteration): string {
  const iters = s.iters.map((it) => (it.name === it.axis ? it.name : `${it.name} in ${it.axis}`)).join(', ')
  const kinds = s.iters.length > 0 ? ` as ${s.iters.map((it) => it.kind).join('')}` : ''
  const where =
    s.where.length > 0 ? ` where (${s.where.map((w) => printExpr1(w, null, 3)).join(' and ')})` : ''
  return `iterate ${s.name} [${iters}]${kinds}${where}`
}

function printIfBodies(s: If1, indent: string, out: string[]): void {
  printStatements(s.then, `${indent}  `, out)
  const [onlyStmt] = s.else
  if (onlyStmt?.kind === 'if' && s.else.length === 1) {
    out.push(`${indent}} else if (${printExpr1(onlyStmt.cond)}) {`)
    printIfBodies(onlyStmt, indent, out)
    return
  }
  if (s.else.length > 0) {
    out.push(`${indent}} else {`)
    printStatements(s.else, `${indent}  `, out)
  }
  out.push(`${indent}}`)
}

function printStatements(list: readonly Stmt1[], indent: string, out: string[]): void {
  const inner = `${indent}  `
  for (const s of list) {
    switch (s.kind) {
      case 'iterate':
        out.push(`${indent}${printIterationHead(s)} {`)
        printStatements(s.body, inner, out)
        out.push(`${indent}}`)
        break
      case 'if':
        out.push(`${indent}if (${printExpr1(s.cond)}) {`)
        printIfBodies(s, indent, out)
        break
      case 'let':
        out.push(`${indent}let ${s.name} = ${printExpr1(s.value)}`)
        break
      case 'assign':
      case 'reduce': {
        const targets = tuple(s.targets.map((t) => printExpr1(t)))
        const values = tuple(
          s.values.map((v, k) => printExpr1(v, v.kind === 'const' ? v.dtype : s.targets[k]!.dtype)),
        )
        const name = s.kind === 'reduce' ? s.reducer.name : ''
        out.push(`${indent}${targets} ${name}= ${values}`)
        break
      }
      case 'rounds':
        out.push(`${indent}${roundsText(s, printExpr1)}`)
        break
      default:
        unreachable(s)
    }
  }
}

/** Statements as text, without a final line break. */
function printBody1(list: readonly Stmt1[], indent = ''): string {
  const out: string[] = []
  printStatements(list, indent, out)
  return out.join('\n')
}

/** The kernel as text, without a final line break. */
export function print1(kernel: Kernel1): string {
  const params = kernel.params.map((p) => `${p.name}: ${p.kind === 'size' ? 'size' : p.dtype}`).join(', ')
  const monoids = [...declaredMonoids(kernel.body).values()].map((m) => `${printMonoid(m)}\n\n`)
  return [
    `${monoids.join('')}kernel ${kernelIdentifier(kernel.name)}(${params}) {`,
    ...kernel.axes.map((a) => `  ${printAxis(a)}`),
    ...kernel.buffers.map((b) => `  ${printBuffer1(b)}`),
    printBody1(kernel.body, '  '),
    '}',
  ]
    .filter((text) => text !== '')
    .join('\n')
}
