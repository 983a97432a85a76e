/** Formats as text: descriptions, with their items in canonical order, and compositions. */
import type * as ast from '../nodes/nodes.ts'
import { type Doc, group, line, nest } from './layout-document.ts'
import type { Printer } from './print-blocks.ts'
import { exprDoc, useDoc, whereDoc, widthDoc } from './print-expr.ts'
import {
  alignedPeers,
  axisDoc,
  elementText,
  exprs,
  listNames,
  optional,
  single,
  tuple,
} from './print-parts.ts'

export function printFormat(p: Printer, f: ast.Format): void {
  const head = [`format ${f.name.name}`, optional(f.params.map(paramDoc)), ' over ', tuple(listNames(f.over))]
  p.block(f.trivia, true, head, () =>
    f.body.kind === 'composition' ? printRules(p, f.body.rules) : printDescription(p, f.body),
  )
}

function paramDoc(x: ast.FormatParam): Doc {
  const head = x.type === 'integer' ? x.name.name : `${x.name.name}: ${x.type}`
  return x.default ? [`${head} = `, exprDoc(x.default)] : head
}

function printDescription(p: Printer, d: ast.Description): void {
  const lines: (readonly [ast.Trivia | undefined, Doc])[] = []
  for (const s of d.sorts) {
    const within: Doc = s.within ? [' within ', exprDoc(s.within)] : ''
    const to = ` -> (${s.place.name}, ${s.at.name})`
    lines.push([s.trivia, [`sort ${elementText(s.dim)} by `, exprDoc(s.by), within, to]])
  }
  d.axes.forEach((a, k) => {
    lines.push([a.trivia, axisDoc(a, alignedPeers(d.axes, k))])
  })
  const map = (word: string, m: ast.CoordMap): Doc => [
    word,
    tuple(listNames(m.from)),
    ' -> ',
    tuple(exprs(m.to)),
  ]
  lines.push([d.map.trivia, map('map ', d.map)], [d.inverse.trivia, map('inverse ', d.inverse)])
  if (d.mask) lines.push([d.mask.trivia, `mask ${d.mask.name.name}`])
  if (d.where) lines.push([d.where.trivia, ['where (', exprDoc(d.where.cond), ')']])
  lines.forEach(([trivia, doc], k) => {
    p.item(trivia, k === 0, doc)
  })
}

function printRules(p: Printer, list: ast.Composition['rules']): void {
  list.forEach((r, k) => {
    if (r.kind === 'part') p.item(r.trivia, k === 0, ruleHead(r))
    else p.block(r.trivia, k === 0, ruleHead(r), () => printRules(p, r.rules), single(r.rules, partHead))
  })
}

const partHead = (r: ast.Rule): Doc | undefined => (r.kind === 'part' ? ruleHead(r) : undefined)

function ruleHead(r: ast.Rule): Doc {
  switch (r.kind) {
    case 'part':
      return ['part ', r.name ? `${r.name.name} = ` : '', useDoc(r.use), whereDoc(r.where)]
    case 'partition':
      return [`partition ${elementText(r.dim)} into `, exprDoc(r.into), r.as ? ` as ${r.as.name}` : '']
    case 'bucket': {
      const [firstDim, ...otherDims] = r.dims.map(elementText)
      const dims: Doc =
        otherDims.length > 0 || firstDim === undefined ? tuple([firstDim ?? '', ...otherDims]) : firstDim
      return group(
        ['bucket ', dims, ' by length into ', nest(widthsDoc(r.widths))],
        ` as ${r.as.name}${r.split ? ' split' : ''}`,
      )
    }
  }
}

/** `1, 2 .. 2^k` */
export const widthsDoc = (widths: readonly ast.Width[]): Doc =>
  widths.map((w, k): Doc => {
    const width = widthDoc(w.value, w.power)
    return k === 0 ? width : [w.doubling ? [line, '.. '] : [',', line], width]
  })
