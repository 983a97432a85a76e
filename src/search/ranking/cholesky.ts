/** Symmetric positive definite systems by Cholesky's decomposition; matrices in rows, one after the other. */

/** The lower triangle L with L Lᵀ = the matrix, in its place. */
export function cholesky(matrix: Float64Array, n: number): Float64Array {
  for (let j = 0; j < n; j++)
    for (let i = j; i < n; i++) {
      let sum = matrix[i * n + j]!
      for (let k = 0; k < j; k++) sum -= matrix[i * n + k]! * matrix[j * n + k]!
      matrix[i * n + j] = i === j ? Math.sqrt(sum) : sum / matrix[j * n + j]!
    }
  return matrix
}

/** x with L x = b, in its place. */
export function solvedLower(lower: Float64Array, b: Float64Array): Float64Array {
  const n = b.length
  for (let i = 0; i < n; i++) {
    let sum = b[i]!
    for (let k = 0; k < i; k++) sum -= lower[i * n + k]! * b[k]!
    b[i] = sum / lower[i * n + i]!
  }
  return b
}

/** x with Lᵀ x = b. */
export function solvedUpper(lower: Float64Array, b: Float64Array): Float64Array {
  const n = b.length
  const x = b.slice()
  for (let i = n - 1; i >= 0; i--) {
    let sum = x[i]!
    for (let k = i + 1; k < n; k++) sum -= lower[k * n + i]! * x[k]!
    x[i] = sum / lower[i * n + i]!
  }
  return x
}
