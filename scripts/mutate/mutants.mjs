/** Mutants of source text: what each is, where it is, and what stands there instead. */
import { resolve } from 'node:path'
import * as ts from 'typescript/unstable/ast'
import { API } from 'typescript/unstable/sync'

const COMPARED = new Map([
  ['<', '<='],
  ['<=', '<'],
  ['>', '>='],
  ['>=', '>'],
  ['===', '!=='],
  ['!==', '==='],
])
const ARITHMETIC = new Map([
  ['+', '-'],
  ['-', '+'],
  ['*', '+'],
])
const OPERATORS = new Map([
  ['and', 'or'],
  ['or', 'and'],
  ['add', 'sub'],
  ['sub', 'add'],
  ['lt', 'le'],
  ['le', 'lt'],
  ['min', 'max'],
  ['max', 'min'],
  ['eq', 'ne'],
  ['ne', 'eq'],
])

/**
 * Trees of files below `src/`, from a compiler that ends with this process.
 * @returns {(file: string) => ts.SourceFile}
 */
export function treesOf() {
  const config = resolve('tsconfig.build.json')
  const project = new API({ cwd: resolve('.') }).updateSnapshot({ openProjects: [config] }).getProject(config)
  return (file) => project.program.getSourceFile(resolve(file))
}

/**
 * All mutants of a file. `insert` is text put at `start`; else `[start, end)` is an expression and `text` another.
 * @returns {{ file: string, start: number, end: number, line: number, kind: string, was: string, text: string, insert?: boolean }[]}
 */
export function mutantsOf(file, tree) {
  const source = tree.text
  const found = []
  const lines = source.split('\n')
  const textOf = (node) => node.getText(tree)
  const add = (kind, node, text, insert) => {
    const start = insert ? node : node.getStart(tree)
    const line = tree.getLineAndCharacterOfPosition(start).line + 1
    const was = insert ? '' : textOf(node)
    found.push({
      file,
      start,
      end: insert ? start : node.getEnd(),
      line,
      kind,
      was,
      text,
      in: lines[line - 1].trim(),
      ...(insert ? { insert } : {}),
    })
  }
  const visit = (node) => {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isTemplateExpression(node)) return
    // Messages change no result, nor do assertions that hold, nor measured times.
    if (ts.isThrowStatement(node) || isRefusal(node) || isAssertion(node) || isTime(node)) return
    if (ts.isBinaryExpression(node)) {
      const op = node.operatorToken.getText(tree)
      const [a, b] = [textOf(node.left), textOf(node.right)]
      if (COMPARED.has(op)) add('comparison', node, `${a} ${COMPARED.get(op)} ${b}`)
      if ((op === '<' || op === '>' || op === '-') && a !== b)
        add('operands swapped', node, `(${b}) ${op} (${a})`)
      if (op === '&&' || op === '||') {
        add('and, or', node, `(${a}) ${op === '&&' ? '||' : '&&'} (${b})`)
        const terms = termsOf(node, op)
        if (!isChain(node.parent, op))
          for (const term of terms) {
            const rest = terms.filter((t) => t !== term).map(textOf)
            if (!repeated(textOf(term), rest)) add('term dropped', node, rest.join(` ${op} `))
          }
      }
      if (ARITHMETIC.has(op) && !/['"`]/.test(a + b))
        add('arithmetic', node, `(${a}) ${ARITHMETIC.get(op)} (${b})`)
    }
    if (ts.isNumericLiteral(node) && Number(node.text) <= 4 && isCounted(node))
      add('off by one', node, `${Number(node.text) + 1}`)
    if (ts.isCallExpression(node) && /^Math\.(min|max)$/.test(textOf(node.expression))) {
      const other = textOf(node.expression) === 'Math.min' ? 'Math.max' : 'Math.min'
      add('min, max', node.expression, other)
    }
    if (ts.isIfStatement(node) && !node.elseStatement) {
      add('guard', node.expression, 'false')
      if (!leaves(node.thenStatement)) add('guard', node.expression, 'true')
    }
    if (ts.isExpressionStatement(node) && ts.isCallExpression(node.expression)) {
      const call = node.expression
      const made = call.expression.kind === ts.SyntaxKind.SuperKeyword
      if (!made && !isRefusal(call) && !isAssertion(call)) add('call dropped', call, 'undefined')
    }
    if (ts.isCallExpression(node)) {
      // Operators of the programs that are made.
      const [first] = node.arguments
      if (first && ts.isStringLiteral(first) && OPERATORS.has(first.text))
        add('operator', first, `'${OPERATORS.get(first.text)}'`)
    }
    if (ts.isConditionalExpression(node)) add('guard', node.condition, 'true')
    if (ts.isObjectLiteralExpression(node)) {
      const propertyOf = (name) =>
        node.properties.find((p) => ts.isPropertyAssignment(p) && textOf(p.name) === name)?.initializer
      const [name, run, match] = ['name', 'run', 'match'].map(propertyOf)
      if (name && run && /\bpasses\.ts$/.test(file)) {
        add('pass removed', run, '(program) => program')
        found.at(-1).pass = textOf(name).slice(1, -1)
      }
      if (name && match && propertyOf('to')) add('rule removed', match, '() => null')
    }
    if (
      (ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node) || ts.isArrowFunction(node)) &&
      node.body &&
      ts.isBlock(node.body)
    ) {
      const type = node.type ? textOf(node.type) : ''
      const at = node.body.getStart(tree) + 1
      const refuses = /refuse\(|SptError|refusal/.test(textOf(node.body))
      if (type === 'void' && refuses) add('check answers yes', at, 'return', true)
      if (type === 'boolean')
        for (const answer of ['true', 'false']) add('predicate constant', at, `return ${answer}`, true)
    }
    node.forEachChild(visit)
  }
  visit(tree)
  return found

  function isRefusal(node) {
    return ts.isCallExpression(node) && /refuse$|^refusal$|fail$|^diagnostic$/.test(textOf(node.expression))
  }
  function isAssertion(node) {
    return ts.isCallExpression(node) && textOf(node.expression) === 'invariant'
  }
  function isTime(node) {
    if (ts.isBinaryExpression(node)) return /\bperformance\.now\(\)/.test(textOf(node))
    return ts.isVariableDeclaration(node) && /[tT]ime$|[sS]econds$/.test(textOf(node.name))
  }
  function isChain(node, op) {
    return ts.isBinaryExpression(node) && node.operatorToken.getText(tree) === op
  }
  function termsOf(node, op) {
    return isChain(node, op) ? [...termsOf(node.left, op), ...termsOf(node.right, op)] : [node]
  }
  /**
   * Whether others of its terms say what `x.kind === '…'` of a conjunction, or its negation of a disjunction, says: nodes of
   * other kinds do not have the member that these compare or look up.
   */
  function repeated(term, others) {
    const [, x, op] = /^([\w.!?#]+?)[?!]?\.kind ([!=]==) '\w+'$/.exec(term) ?? []
    if (!x) return false
    const member = `${x.replaceAll(/[.?]/g, '\\$&')}\\.(?!kind)\\w+`
    const asks = `${member} ${op === '===' ? '(===|<|<=|>|>=)' : '!=='} (?!undefined)`
    const both = `\\((${asks}'\\w+'( (&&|\\|\\|) )?)+\\)$`
    const has = `${op === '===' ? '' : '!'}[\\w.#]+\\.(has|includes)\\(${member}\\)$`
    const found = new RegExp(`^(${asks}|${both}|${has})`)
    return others.some((t) => found.test(t))
  }
  /** Whether a number is in an expression, not a key or an enumeration of constants. */
  function isCounted(node) {
    const p = node.parent
    return (
      ts.isBinaryExpression(p) ||
      ts.isCallExpression(p) ||
      ts.isElementAccessExpression(p) ||
      ts.isVariableDeclaration(p)
    )
  }
  /** Whether a statement ends its function or iteration, or refuses. */
  function leaves(s) {
    const last = ts.isBlock(s) ? s.statements.at(-1) : s
    if (!last) return false
    if (ts.isExpressionStatement(last)) return isRefusal(last.expression)
    return (
      ts.isReturnStatement(last) ||
      ts.isThrowStatement(last) ||
      ts.isContinueStatement(last) ||
      ts.isBreakStatement(last)
    )
  }
}

/**
 * `source` with all of its mutants, each switched on by its number: `globalThis.mutant(n)`. Numbers are `m.id`. A statement
 * does not begin with a parenthesis: the one before it would go on there.
 */
export function withMutants(source, mutants) {
  let text = source
  for (const m of [...mutants].sort((a, b) => b.start - a.start))
    text = m.insert
      ? `${text.slice(0, m.start)} if (globalThis.mutant(${m.id})) ${m.text}; ${text.slice(m.end)}`
      : `${text.slice(0, m.start)}${m.kind === 'call dropped' ? 'void ' : ''}(globalThis.mutant(${m.id}) ? (${m.text}) : (${m.was}))${text.slice(m.end)}`
  return text
}
