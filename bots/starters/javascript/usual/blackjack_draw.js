  draw({ total }) {
    return total < 17 ? 'hit' : 'stand';
  }
