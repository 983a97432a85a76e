/** The data of a kernel: a matrix by name or from a file, sizes, scalars. */
import type { KernelInfo, MatrixChoice } from '../protocol.ts'
import { type Client, Superseded } from './client.ts'
import { byId, element, fillSelect, number } from './dom.ts'

export const MATRICES = [
  { name: 'data/cora.mtx', label: 'Cora, a citation graph' },
  { name: 'blocks:256', label: '8 × 8 blocks, 256 rows' },
  { name: 'banded:512', label: 'banded, 512 rows' },
  { name: 'uniform:1000', label: 'uniform, 1,000 rows' },
  { name: 'power-law:1000', label: 'power law, 1,000 rows' },
  { name: 'r-mat:1024', label: 'R-MAT, 1,024 rows' },
  { name: 'communities:1024', label: 'communities, 1,024 rows' },
  { name: 'windowed:512', label: 'attention windows, 512 rows' },
  { name: 'pruned-layer:4096', label: 'pruned layer, 256 rows' },
  { name: 'stencil:1024', label: 'stencil, 1,024 rows' },
  { name: 'triangular:256', label: 'triangular, 256 rows' },
  { name: 'empty-rows:1000', label: 'empty rows, 1,000 rows' },
] as const

/** Bytes of a file that the page reads. */
const MAX_FILE = 256 * 2 ** 20

let shown = ''

export function showMatrix(matrix: MatrixChoice, kernel: KernelInfo | undefined, client: Client): void {
  const select = byId<HTMLSelectElement>('matrix')
  fillSelect(
    select,
    MATRICES.map(({ name, label }) => ({ value: name, label })),
    matrix.name,
  )
  select.disabled = kernel?.matrix === null
  const key = `${matrix.name} ${matrix.bytes?.length} ${kernel?.matrix}`
  if (key === shown) return
  shown = key
  const info = byId('matrix-info')
  if (!kernel) return
  if (kernel.matrix === null) {
    info.textContent = 'No sparse matrix of two dimensions: data are random.'
    return
  }
  void client
    .latest<'matrix'>('matrix', { kind: 'matrix', matrix })
    .then(({ rows, columns, nonzeros }) => {
      info.className = 'quiet'
      info.textContent = `${kernel.matrix}: ${number(rows)} × ${number(columns)}, ${number(nonzeros)} nonzeros`
    })
    .catch((e: Error) => {
      if (e instanceof Superseded) return
      shown = ''
      info.className = 'problem'
      info.textContent = e.message.split('\n')[0]!
    })
}

/** Inputs for sizes and scalars that the matrix does not determine. */
export function showValues(
  values: Readonly<Record<string, number>>,
  kernel: KernelInfo | undefined,
  changed: (values: Readonly<Record<string, number>>) => void,
): void {
  const focused = document.activeElement?.id
  byId('values').replaceChildren(
    ...(kernel?.values ?? []).map(({ name, kind, integer, initial }) => {
      const input = element('input', {
        id: `value-${name}`,
        type: 'number',
        value: String(values[name] ?? initial),
        min: kind === 'size' ? '0' : '',
        max: kind === 'size' ? '100000' : '',
        step: integer ? '1' : 'any',
        onchange: () => {
          if (input.reportValidity() && input.value !== '')
            changed({ ...values, [name]: Number(input.value) })
        },
      })
      return element('label', { className: 'field' }, `${name} `, input)
    }),
  )
  if (focused?.startsWith('value-')) document.getElementById(focused)?.focus()
}

/** Files that are dropped into the page or opened with the button. */
export function acceptFiles(
  accepted: (matrix: MatrixChoice) => void,
  notice: (text: string | null) => void,
): void {
  const read = async (file: File | undefined): Promise<void> => {
    if (!file) return notice('Nothing that was dropped is a file.')
    if (file.size > MAX_FILE) return notice(`${file.name} is larger than ${MAX_FILE / 2 ** 20} MiB.`)
    try {
      const bytes = new Uint8Array(await file.arrayBuffer())
      notice(null)
      accepted({ name: file.name, bytes })
    } catch {
      notice(`${file.name} cannot be read.`)
    }
  }
  const input = byId<HTMLInputElement>('file')
  byId('open').addEventListener('click', () => input.click())
  input.addEventListener('change', () => {
    void read(input.files?.[0])
    input.value = ''
  })
  const cover = byId('drop')
  const hasFile = (e: DragEvent): boolean => [...(e.dataTransfer?.types ?? [])].includes('Files')
  // In the capture phase: the editor would insert the content of the file.
  const on = (type: 'dragenter' | 'dragover' | 'dragleave' | 'drop', act: (e: DragEvent) => void): void =>
    window.addEventListener(
      type,
      (e) => {
        if (!hasFile(e)) return
        e.preventDefault()
        e.stopPropagation()
        act(e)
      },
      true,
    )
  on('dragenter', () => {
    cover.hidden = false
  })
  on('dragover', () => {
    cover.hidden = false
  })
  on('dragleave', (e) => {
    if (e.relatedTarget === null) cover.hidden = true
  })
  on('drop', (e) => {
    cover.hidden = true
    void read(e.dataTransfer?.files[0])
  })
}
