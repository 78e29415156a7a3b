"""Principal components: plain, kernel, probabilistic; whitening; pre-images."""
