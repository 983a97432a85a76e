// Prose of the repository as blocks `{ file, line, kind, text }`: paragraphs and table cells of Markdown, doc comments, and
// literals of messages and of the command line. A block keeps its line breaks, so that a phrase has a line.

/** Code, links' targets, images and tags are no prose; replaced without touching line breaks. */
const inline = (text) =>
  text
    .replace(/!\[[^\]]*\]\([^)]*\)/g, '')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/(`+)[^`][\s\S]*?\1/g, (code) => `CODE${code.replace(/[^\n]/g, '')}`)
    .replace(/<!--[\s\S]*?-->|<[a-zA-Z/][^>]*>/g, (tag) => tag.replace(/[^\n]/g, ''))

/** Splits the Markdown that this repository uses; fences, headings and front matter are left out. */
export function markdown(file, source) {
  const blocks = []
  let open
  let fence
  const close = () => {
    if (open) blocks.push({ ...open, text: inline(open.text) })
    open = undefined
  }
  source.split('\n').forEach((row, k) => {
    const mark = /^\s*(?:>\s*)?(`{3,}|~{3,})/.exec(row)?.[1]
    if (fence) {
      if (mark?.startsWith(fence)) fence = undefined
      return
    }
    if (mark || (k === 0 && row === '---')) {
      close()
      fence = mark ?? undefined
      return
    }
    const bullet = /^\s*(?:[-*+]|\d+[.)])\s+/.exec(row)
    if (/^\s*$|^#|^\s*:::|^ {4,}\S|^\s*\|?[-:| ]+\|?\s*$/.test(row)) {
      close()
    } else if (/^\s*\|/.test(row)) {
      close()
      // A bar inside of code or after a backslash separates nothing.
      const cells = inline(row.replace(/\\\|/g, '¦')).split('|').slice(1, -1)
      for (const text of cells) blocks.push({ file, line: k + 1, kind: 'cell', text: text.trim() })
    } else {
      if (bullet) close()
      open ??= { file, line: k + 1, kind: 'paragraph', text: '' }
      open.text += `${open.text && '\n'}${row.slice(bullet?.[0].length ?? 0).trim()}`
    }
  })
  close()
  return blocks
}

const lineAt = (source, index) => source.slice(0, index).split('\n').length

/** Doc comments of TypeScript. */
export const comments = (file, source) =>
  [...source.matchAll(/\/\*\*([\s\S]*?)\*\//g)].map((m) => ({
    file,
    line: lineAt(source, m.index),
    kind: 'comment',
    text: inline(m[1].replace(/\{@\w+ ([^}]*)\}/g, '`$1`').replace(/^[ \t]*\*? ?/gm, '')),
  }))

/** Where a regular expression that begins at `k` ends, or `k` where the slash divides. */
function skipRegex(source, k) {
  if (!/[(,=:[!&|?{};>]\s*$|\breturn\s*$/.test(source.slice(Math.max(0, k - 20), k))) return k
  const m = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\//y
  m.lastIndex = k
  return m.test(source) ? m.lastIndex - 1 : k
}

/**
 * String literals of the code in `[start, end)`; with `one`, up to the end of the expression: a comma or a closing
 * bracket that nothing opened. An inserted value stands as CODE, and literals inside of it are read as well.
 * @returns {{ file: string, line: number, kind: string, text: string }[]}
 */
function literals(file, source, kind, { start = 0, end = source.length, one = false } = {}) {
  const blocks = []
  let depth = 0
  for (let k = start; k < end; k++) {
    const c = source[k]
    if (c === "'" || c === '`' || c === '"') {
      const from = k
      let text = ''
      for (k++; k < end && source[k] !== c; k++) {
        if (c === '`' && source.startsWith('${', k)) {
          const inner = k + 2
          for (let braces = 0; k < end; k++) {
            if (source[k] === '{') braces++
            else if (source[k] === '}' && --braces === 0) break
          }
          blocks.push(...literals(file, source, kind, { start: inner, end: k }))
          text += 'CODE'
        } else if (source[k] === '\\') text += source[++k] === 'n' ? ' ' : source[k]
        else text += source[k]
      }
      blocks.push({ file, line: lineAt(source, from), kind, text: inline(text) })
    } else if (source.startsWith('//', k)) k = source.indexOf('\n', k)
    else if (source.startsWith('/*', k)) k = source.indexOf('*/', k) + 1
    else if (c === '/') k = skipRegex(source, k)
    else if ('([{'.includes(c)) depth++
    else if (')]}'.includes(c) && --depth < 0 && one) break
    else if (
      one &&
      depth === 0 &&
      (c === ',' || /^\n\s*(?:const|return|export|function)\b/.test(source.slice(k, k + 80)))
    )
      break
  }
  return blocks
}

/** `message`, `expected` and `hint` of diagnostics. */
export const messages = (file, source) =>
  [...source.matchAll(/(?<=[{,(]\s*)(?:message|expected|hint):\s/g)].flatMap((m) =>
    literals(file, source, 'message', { start: m.index + m[0].length, one: true }).filter((b) =>
      / /.test(b.text),
    ),
  )

/** Help and reports of the command line: its literals of three words or more, other than messages. */
export function help(file, source) {
  const others = new Set(messages(file, source).map((b) => `${b.line} ${b.text}`))
  return literals(file, source, 'help').filter(
    (b) => /\w+\W+\w+ \w+/.test(b.text) && !others.has(`${b.line} ${b.text}`),
  )
}
