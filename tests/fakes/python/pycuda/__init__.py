"""What the examples use of PyCUDA, in host memory."""
